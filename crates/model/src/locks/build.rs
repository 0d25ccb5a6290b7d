//! Builds: phases of one job and of many in turn, several builds at once on the same processors.

/// A build.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Build {
    /// Seconds of work of the phases with one job.
    pub serial: f64,
    /// Seconds of work of the phases with many, of all jobs together.
    pub parallel: f64,
    /// Jobs in those (`-j`).
    pub jobs: u32,
    /// How many phases of each kind there are.
    pub phases: u32,
}

/// The processors, and the work that so many of them do at once.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// Processors.
    pub processors: u32,
    /// Work of one processor in a second, that of the reference machine being 1.
    pub speed: f64,
    /// Work in a second by 0, 1, … processors together, in seconds of one.
    pub throughput: Vec<f64>,
}

/// What a run gave.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Seconds from the start of a build to its end, on average.
    pub real: f64,
    /// Processor seconds of a build, on average, in which jobs ran without advancing: at the lock.
    pub waited: f64,
}

/// Work that is less than this is done; seconds.
const NOTHING: f64 = 1e-9;

struct Running {
    /// Seconds until it is started.
    delay: f64,
    /// Phases left, the present one included; the even ones are serial.
    left: u32,
    work: f64,
}

impl Build {
    fn phase(&self, left: u32) -> (f64, u32) {
        let count = f64::from(self.phases);
        if left.is_multiple_of(2) { (self.serial / count, 1) } else { (self.parallel / count, self.jobs) }
    }

    /// `copies` of the build at once. They are started within one serial phase's time, so that their
    /// phases do not fall together.
    pub fn run(&self, machine: &Machine, copies: u32) -> Outcome {
        let first = 2 * self.phases;
        let (work, _) = self.phase(first);
        let delay = |copy| work / machine.speed * f64::from(copy) / f64::from(copies);
        let mut builds: Vec<Running> =
            (0..copies).map(|copy| Running { delay: delay(copy), left: first, work }).collect();
        let (mut now, mut outcome) = (0.0, Outcome::default());
        let count = f64::from(copies);
        while builds.iter().any(|build| build.left > 0) {
            let jobs_of = |build: &Running| {
                if build.left > 0 && build.delay <= NOTHING { self.phase(build.left).1 } else { 0 }
            };
            let jobs: u32 = builds.iter().map(jobs_of).sum();
            let running = jobs.min(machine.processors);
            let advance = machine.throughput[running as usize];
            let rate = |build: &Running| {
                advance * machine.speed * f64::from(jobs_of(build)) / f64::from(jobs.max(1))
            };
            let until = |build: &Running| match (build.left, rate(build)) {
                (0, _) => f64::INFINITY,
                (_, rate) if rate > 0.0 => build.work / rate,
                _ => build.delay,
            };
            let step = builds.iter().map(until).fold(f64::INFINITY, f64::min);
            now += step;
            outcome.waited += step * (f64::from(running) - advance) / count;
            let rates: Vec<f64> = builds.iter().map(rate).collect();
            for (copy, (build, rate)) in builds.iter_mut().zip(rates).enumerate() {
                build.delay -= step.min(build.delay);
                build.work -= step * rate;
                if build.left > 0 && build.work <= NOTHING {
                    build.left -= 1;
                    match build.left {
                        0 => outcome.real += (now - delay(copy as u32)) / count,
                        left => build.work = self.phase(left).0,
                    }
                }
            }
        }
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::locks::Token;

    fn machine(processors: u32, token: Token) -> Machine {
        Machine { processors, speed: 1.0, throughput: token.throughput(processors) }
    }

    #[test]
    fn without_lock_it_is_amdahls_law() {
        let build = Build { serial: 45.0, parallel: 322.0, jobs: 48, phases: 10 };
        let real = build.run(&machine(48, Token::NONE), 1).real;
        assert!((real - (45.0 + 322.0 / 48.0)).abs() < 1e-6, "{real}");
        // More jobs than processors are no faster than as many.
        let four = build.run(&machine(4, Token::NONE), 1).real;
        assert!((four - (45.0 + 322.0 / 4.0)).abs() < 1e-6, "{four}");
    }

    #[test]
    fn copies_share_the_processors() {
        let build = Build { serial: 10.0, parallel: 100.0, jobs: 4, phases: 20 };
        let one = build.run(&machine(4, Token::NONE), 1);
        let four = build.run(&machine(4, Token::NONE), 4);
        assert!(four.real > 2.5 * one.real && four.real < 4.5 * one.real);
        assert!(one.waited.abs() < 1e-9);
        assert!(build.run(&machine(4, Token { held: 0.3, slowing: 0.0 }), 1).waited > 1.0);
    }
}
