//! Memory for the blocks of key tables: [`BlockArena`] maps it, and [`Blocks`] is the list of the blocks of a table.
//!
//! The tables of a set grow in turns and by small blocks. If the allocator made each block, it would extend its heap by a
//! system call and map every page by a page fault, and the system serializes both among the threads of a process. Therefore
//! the tables share large mappings, for which the system uses huge pages if it can.

use memmap2::{MmapMut, MmapRaw};
use parking_lot::Mutex;
use std::fmt;
use std::ops::{Index, IndexMut};
use std::ptr::NonNull;
use std::sync::Arc;

/// Length of the mappings that tables share. Their pages take no memory before they are used.
const SHARED_MAPPING_LEN: usize = 16 << 20;

/// Length of a huge page on x86-64 and, usually, on other systems. This much memory may be taken and not used.
const HUGE_PAGE_LEN: usize = 2 << 20;

/// Memory of blocks, shared by tables. It is freed with the last of them.
#[derive(Debug)]
pub(super) struct BlockArena {
    /// Length of a mapping, unless a table needs more at once: 0, or a whole number of huge pages.
    mapping_len: usize,
    memory: Mutex<ArenaMemory>,
}

#[derive(Debug, Default)]
struct ArenaMemory {
    mappings: Vec<Mapping>,
    /// Bytes of the last mapping that are taken.
    taken: usize,
}

/// A piece of memory that does not move. All its bytes are 0 at first.
#[derive(Debug)]
enum Mapping {
    /// A long one.
    Mapped(MmapRaw),
    /// A short one, which the allocator makes without a system call.
    Allocated(Vec<u128>),
}

impl Mapping {
    fn new(len: usize) -> Mapping {
        let allocated = || Mapping::Allocated(vec![0; len.div_ceil(size_of::<u128>())]);
        if len < HUGE_PAGE_LEN {
            return allocated();
        }
        // If there is no memory, the allocator of the command ends the process with a message.
        let Ok(map) = MmapMut::map_anon(len) else { return allocated() };
        // Without huge pages, the memory is the same.
        #[cfg(target_os = "linux")]
        let _ = map.advise(memmap2::Advice::HugePage);
        Mapping::Mapped(map.into())
    }

    /// The start and the length of the memory. No reference to it is made, because other threads use blocks in it.
    fn bytes(&mut self) -> (*mut u8, usize) {
        match self {
            Mapping::Mapped(map) => (map.as_mut_ptr(), map.len()),
            Mapping::Allocated(words) => (words.as_mut_ptr().cast(), words.len() * size_of::<u128>()),
        }
    }
}

impl ArenaMemory {
    /// Bytes of the last mapping that are not taken.
    fn free_len(&mut self) -> usize {
        self.mappings.last_mut().map_or(0, |mapping| mapping.bytes().1 - self.taken)
    }

    /// Adds a mapping of at least `len` bytes.
    fn add(&mut self, len: usize) {
        self.mappings.push(Mapping::new(len));
        self.taken = 0;
    }
}

impl BlockArena {
    /// An arena for tables that share its mappings, for a set that may take `limit` bytes. Of a low limit, a huge page that is
    /// not used would be too large a part: then each table gets memory of its own.
    pub(super) fn shared(limit: usize) -> Arc<BlockArena> {
        let huge_pages = limit / 16 / HUGE_PAGE_LEN;
        BlockArena::with_mappings_of(SHARED_MAPPING_LEN.min(huge_pages.saturating_mul(HUGE_PAGE_LEN)))
    }

    /// An arena for a single table. A mapping is as long as the blocks that the table needs when it grows.
    pub(super) fn of_table() -> Arc<BlockArena> {
        BlockArena::with_mappings_of(0)
    }

    fn with_mappings_of(mapping_len: usize) -> Arc<BlockArena> {
        Arc::new(BlockArena { mapping_len, memory: Mutex::default() })
    }

    /// Maximum number of bytes that take memory without being in a block.
    pub(super) fn spare_len(&self) -> usize {
        self.mapping_len.min(HUGE_PAGE_LEN)
    }

    /// Appends memory for at least one block of type `B` to `blocks`, and for `count` at most, which is not 0. Nothing else
    /// refers to this memory.
    fn take<B>(&self, count: usize, blocks: &mut Vec<NonNull<B>>) {
        const { assert!(align_of::<B>() <= align_of::<u128>() && size_of::<B>() > 0) };
        // Mappings and the blocks in them begin at multiples of the largest alignment that a block may have.
        let len = size_of::<B>().next_multiple_of(align_of::<u128>());
        let memory = &mut *self.memory.lock();
        if memory.free_len() < len {
            memory.add(self.mapping_len.max(count * len));
        }
        let (count, taken) = (count.min(memory.free_len() / len), memory.taken);
        memory.taken += count * len;
        let (start, _) = memory.mappings.last_mut().expect("a mapping has space").bytes();
        blocks.extend((0..count).map(|i| {
            // SAFETY: `taken + (i + 1) * len` is at most the length of the mapping.
            let block = unsafe { start.add(taken + i * len) };
            NonNull::new(block.cast()).expect("a mapping is not at address 0")
        }));
    }
}

/// The blocks of a table, in the memory of an arena. Like a vector of boxes; the memory is freed with the arena.
pub(super) struct Blocks<B> {
    /// Each refers to memory of the arena that nothing else refers to.
    blocks: Vec<NonNull<B>>,
    arena: Arc<BlockArena>,
}

impl<B: Copy> Blocks<B> {
    /// No blocks. The memory of blocks will be that of `arena`.
    pub(super) fn new(arena: Arc<BlockArena>) -> Blocks<B> {
        Blocks { blocks: Vec::new(), arena }
    }

    /// Number of blocks.
    pub(super) fn len(&self) -> usize {
        self.blocks.len()
    }

    /// Bytes of memory.
    pub(super) fn memory_len(&self) -> usize {
        self.blocks.len() * size_of::<B>() + self.blocks.capacity() * size_of::<NonNull<B>>()
    }

    /// Appends copies of `block` until there are `count` blocks.
    pub(super) fn grow_to(&mut self, count: usize, block: B) {
        self.blocks.reserve_exact(count.saturating_sub(self.blocks.len()));
        while self.blocks.len() < count {
            let first = self.blocks.len();
            self.arena.take(count - first, &mut self.blocks);
            for new in &self.blocks[first..] {
                // SAFETY: the arena returns aligned memory of the length of a block, to which nothing else refers.
                unsafe { new.write(block) };
            }
        }
    }

    /// The blocks in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &B> {
        (0..self.len()).map(|i| &self[i])
    }
}

impl<B> Index<usize> for Blocks<B> {
    type Output = B;

    #[inline(always)]
    fn index(&self, i: usize) -> &B {
        // SAFETY: the block was written when it was added, lives as long as the arena, and is only referred to by `self`.
        unsafe { self.blocks[i].as_ref() }
    }
}

impl<B> IndexMut<usize> for Blocks<B> {
    #[inline(always)]
    fn index_mut(&mut self, i: usize) -> &mut B {
        // SAFETY: as above, and `self` is borrowed mutably.
        unsafe { self.blocks[i].as_mut() }
    }
}

impl<B> fmt::Debug for Blocks<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Blocks").field("len", &self.blocks.len()).finish_non_exhaustive()
    }
}

// SAFETY: the blocks belong to this value alone, as those of a vector of boxes do.
unsafe impl<B: Send> Send for Blocks<B> {}
// SAFETY: as above; a shared reference gives shared references to blocks.
unsafe impl<B: Sync> Sync for Blocks<B> {}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lists that grow in turns keep their blocks, whatever the lengths of mappings are.
    #[test]
    fn lists_that_share_an_arena_keep_their_blocks() {
        for mapping_len in [0, 1_000, 100_000, HUGE_PAGE_LEN] {
            let arena = BlockArena::with_mappings_of(mapping_len);
            let mut lists: Vec<_> = (0..7).map(|_| Blocks::<[u64; 25]>::new(Arc::clone(&arena))).collect();
            for step in 1..=20 {
                for (number, list) in (0..).zip(&mut lists) {
                    let first = list.len();
                    list.grow_to(step * step, [number; 25]);
                    (first..step * step).for_each(|i| list[i][24] = i as u64);
                }
            }
            for (number, list) in (0..).zip(&lists) {
                assert_eq!(list.len(), 400);
                assert!(list.iter().enumerate().all(|(i, block)| block[..24] == [number; 24] && block[24] == i as u64));
                assert!((400 * 200..400 * 208 + 400 * 8).contains(&list.memory_len()));
            }
            drop(arena);
            assert_eq!(lists.pop().map(|list| list[399][24]), Some(399));
        }
    }

    /// At most one block per mapping is not used, and a mapping of a single table has the length of the blocks that it needs.
    #[test]
    fn mappings_are_used_up() {
        let lens = |arena: &BlockArena| -> Vec<usize> {
            arena.memory.lock().mappings.iter_mut().map(|mapping| mapping.bytes().1).collect()
        };
        let shared = BlockArena::with_mappings_of(16_000);
        let mut lists = [(); 2].map(|()| Blocks::<[u128; 100]>::new(Arc::clone(&shared)));
        for count in 1..=15 {
            lists.iter_mut().for_each(|list| list.grow_to(count, [1; 100]));
        }
        assert_eq!(lens(&shared), [16_000; 3]);
        let own = BlockArena::of_table();
        let mut list = Blocks::<[u128; 100]>::new(Arc::clone(&own));
        [1, 4, 9].into_iter().for_each(|count| list.grow_to(count, [1; 100]));
        assert_eq!((lens(&own), own.spare_len()), (vec![1_600, 4_800, 8_000], 0));
    }

    /// What may be taken and not used is a small part of the limit.
    #[test]
    fn shared_mappings_are_huge_pages_if_there_is_memory() {
        let lens = |limit| {
            let arena = BlockArena::shared(limit);
            (arena.mapping_len, arena.spare_len())
        };
        assert_eq!([0, 16 * HUGE_PAGE_LEN - 1].map(lens), [(0, 0); 2]);
        assert_eq!([16 * HUGE_PAGE_LEN, 32 * HUGE_PAGE_LEN - 1].map(lens), [(HUGE_PAGE_LEN, HUGE_PAGE_LEN); 2]);
        assert_eq!([1 << 40, usize::MAX].map(lens), [(SHARED_MAPPING_LEN, HUGE_PAGE_LEN); 2]);
    }
}
