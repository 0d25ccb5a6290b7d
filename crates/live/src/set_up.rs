//! The conditions of a run on the running kernel as what is set up for them.

use std::path::{Path, PathBuf};

use pagelab_confine::{Confinement, OwnSwap, Problem, SetUp, SwapSource, cgroup, guard};
use pagelab_experiment::experiments::Dishonoured;
use pagelab_experiment::setting::{Swap, Thp};
use pagelab_experiment::{Experiment, Failure, Result, Setting};
use pagelab_kernel::hugetlb;
use pagelab_kernel::region::page_size;
use pagelab_kernel::settings::{SWAPPINESS, THP};
use pagelab_kernel::thp;
use pagelab_reference::room::available;

use crate::experiments::changed_by;

/// Swap beyond what the load can fill, for slots that the kernel hands out in clusters to each
/// processor.
const SWAP_SLACK: u64 = 16 << 20;

/// What the load of `experiment` under `setting` needs on any kernel with pages of `page` bytes;
/// swap on a file is on the block device `swap_device` where there is one.
pub fn for_load(experiment: &Experiment, setting: &Setting, page: u64, swap_device: Option<&Path>) -> SetUp {
    let need = experiment.footprint(page);
    let source = match (setting.swap, swap_device) {
        (None | Some(Swap::None), _) => None,
        (Some(Swap::Zram), _) => Some(SwapSource::Zram),
        (Some(Swap::File), Some(device)) => Some(SwapSource::Device(device.to_owned())),
        (Some(Swap::File), None) => Some(SwapSource::File),
    };
    let usual = need.anonymous.saturating_add(SWAP_SLACK);
    let bytes = setting.swap_size.map_or(usual, |size| size.bytes(page).next_multiple_of(page));
    SetUp {
        load: need.total(),
        limit: setting.limit().map(|size| size.bytes(page)),
        no_swap: setting.swap == Some(Swap::None),
        swap: source.map(|source| OwnSwap { source, bytes }),
        settings: setting.set.iter().map(|file| (PathBuf::from(&file.path), file.value.clone())).collect(),
        scratch: need.file,
        ..SetUp::default()
    }
}

/// The same on the running kernel, with the files of its settings.
///
/// # Errors
/// Why not and what to do instead, of huge pages that this kernel does not have.
pub fn set_up(
    experiment: &Experiment,
    setting: &Setting,
    swap_device: Option<&Path>,
) -> Result<SetUp, Dishonoured> {
    let mut set_up = for_load(experiment, setting, page_size() as u64, swap_device);
    let mut settings = match &setting.thp {
        None => Vec::new(),
        Some(Thp::Mode(mode)) => vec![(PathBuf::from(THP), mode.to_string())],
        Some(Thp::Sizes(asked)) => thp::files(asked)?,
    };
    let of_cgroup = set_up.limit.is_some() && !cgroup::version_two();
    match setting.swappiness {
        Some(value) if of_cgroup => set_up.cgroup_swappiness = Some(value),
        value => settings.extend(value.map(|value| (SWAPPINESS.into(), value.to_string()))),
    }
    let set_aside = experiment.footprint(page_size() as u64).hugetlb;
    if set_aside > 0 {
        let no = || ("has a kernel without hugetlb pages".to_owned(), hugetlb::REMEDY.to_owned());
        let pages = hugetlb::with_more(set_aside).ok_or_else(no)?;
        settings.push((hugetlb::PAGES.into(), pages.to_string()));
    }
    settings.append(&mut set_up.settings);
    set_up.settings = settings;
    set_up.saved = changed_by(experiment).into_iter().map(Path::to_owned).collect();
    Ok(set_up)
}

/// Makes everything of `set_up`.
///
/// # Errors
/// Why not; nothing is left of a failed set-up.
pub fn confine(set_up: &SetUp) -> Result<Confinement> {
    Confinement::set_up(set_up, available()).map_err(failure)
}

/// Refuses `bytes` of memory for a load if that could press this machine.
///
/// # Errors
/// [`Failure`] of kind refused.
pub fn refuse_beyond_half(bytes: u64) -> Result<()> {
    guard::memory(bytes, true, available()).map_err(failure)
}

/// The failure of a run whose confinement cannot be had.
pub fn failure(problem: Problem) -> Failure {
    match problem {
        Problem::Unavailable(what, remedy) => Failure::unsupported(what, remedy),
        Problem::Refused(what, remedy) => Failure::refused(what, remedy),
        Problem::Failed(what, error) => Failure::system(what, &error),
        Problem::Interrupted => Failure::interrupted(),
    }
}
