//! The kernel functions whose calls are counted, as Morton counted those of 2.5.27: what each does,
//! and the names that it has had, the newest first. Which of them a kernel has, its symbols say.

use super::symbols::Symbols;

/// Something that the memory management does, and the functions that are called once for it.
#[derive(Clone, Copy, Debug)]
pub struct Function {
    /// The kind and what is done; the same on every kernel.
    pub what: &'static str,
    /// Its names, the newest first.
    pub names: &'static [&'static str],
}

const fn function(what: &'static str, names: &'static [&'static str]) -> Function {
    Function { what, names }
}

/// All of them, by kind.
pub const FUNCTIONS: &[Function] = &[
    function("reverse map: new anonymous page", &["folio_add_new_anon_rmap", "page_add_new_anon_rmap"]),
    function(
        "reverse map: anonymous page again",
        &["folio_add_anon_rmap_ptes", "folio_add_anon_rmap_pte", "page_add_anon_rmap"],
    ),
    function(
        "reverse map: pages of a file",
        &["folio_add_file_rmap_ptes", "folio_add_file_rmap_range", "page_add_file_rmap"],
    ),
    function("reverse map: removed", &["folio_remove_rmap_ptes", "page_remove_rmap"]),
    function("reverse map: given to one process", &["folio_move_anon_rmap", "page_move_anon_rmap"]),
    function("reverse map: references looked for", &["folio_referenced", "page_referenced"]),
    function("reverse map: unmapped everywhere", &["try_to_unmap"]),
    function("fault: any", &["handle_mm_fault"]),
    function("fault: anonymous page", &["do_anonymous_page"]),
    function("fault: write to a shared page", &["do_wp_page"]),
    function("fault: page copied", &["wp_page_copy"]),
    function("fault: from swap", &["do_swap_page"]),
    function("fault: of a file", &["filemap_fault"]),
    function("fault: pages around", &["filemap_map_pages"]),
    function("fork: any", &["copy_process"]),
    function("fork: address space", &["dup_mmap"]),
    function("fork: mapping", &["copy_page_range"]),
    function("fork: anonymous mapping's list", &["anon_vma_fork"]),
    function("exit: address space", &["exit_mmap"]),
    function("exit: page tables freed", &["free_pgtables"]),
    function("unmap: mapping", &["unmap_page_range"]),
    function("unmap: page-table page", &["zap_pte_range"]),
    function("unmap: batch of pages freed", &["free_pages_and_swap_cache"]),
    function(
        "allocation: pages",
        &["__alloc_frozen_pages_noprof", "__alloc_pages_noprof", "__alloc_pages", "__alloc_pages_nodemask"],
    ),
    function("allocation: slow path", &["__alloc_pages_slowpath"]),
    function("allocation: page-table page", &["pte_alloc_one"]),
    function("free: batch of pages", &["folios_put_refs", "release_pages"]),
    function("lists: page added", &["folio_add_lru", "lru_cache_add"]),
    function("lists: batch drained", &["folio_batch_move_lru", "pagevec_lru_move_fn"]),
    function("reclaim: for a limit", &["try_to_free_mem_cgroup_pages"]),
    function("reclaim: for an allocation", &["try_to_free_pages"]),
    function("reclaim: batch of pages looked at", &["shrink_folio_list", "shrink_page_list"]),
    function("reclaim: active pages aged", &["shrink_active_list"]),
    function("reclaim: oldest generation (MGLRU)", &["evict_folios"]),
    function("reclaim: page tables walked (MGLRU)", &["walk_mm"]),
    function("compaction: for an allocation", &["try_to_compact_pages"]),
    function("migration: batch of pages", &["migrate_pages"]),
    function("migration: page balanced or promoted", &["migrate_misplaced_folio", "migrate_misplaced_page"]),
    function("OOM: victim looked for", &["out_of_memory"]),
    function("swap: page out", &["swap_writeout", "swap_writepage"]),
    function("swap: page in", &["swap_read_folio", "swap_readpage"]),
];

/// The symbol of `function` in this kernel.
pub fn find<'a>(function: &Function, symbols: &'a Symbols) -> Option<&'a str> {
    function.names.iter().find_map(|name| symbols.find(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn nothing_is_named_twice() {
        let names: Vec<_> = FUNCTIONS.iter().flat_map(|f| f.names).collect();
        let whats: Vec<_> = FUNCTIONS.iter().map(|f| f.what).collect();
        assert_eq!(names.iter().collect::<HashSet<_>>().len(), names.len());
        assert_eq!(whats.iter().collect::<HashSet<_>>().len(), whats.len());
    }
}
