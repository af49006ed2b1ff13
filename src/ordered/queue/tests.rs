//! Stress tests of the queue: many threads, random delays, stops, panics and sizes.

use super::*;
use crate::ordered::{ReadAhead, StageTicket, Stages};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::thread;

/// A sequence of numbers without a pattern (xorshift64*).
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % end
    }

    /// Lets other threads run a random number of times.
    fn delay(&mut self) {
        (0..self.below(8)).for_each(|_| thread::yield_now());
    }
}

fn limits(window: usize, bytes: usize) -> QueueLimits {
    QueueLimits { window, bytes }
}

/// What ends a stress run early.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Trouble {
    None,
    StopAt(u64),
    PanicAt(u64),
    FailAt(u64),
}

/// Runs `count` tickets through a queue and two stages as a run does, and returns what was consumed.
fn drain_run(seed: u64, threads: u64, count: u64, trouble: Trouble) -> Vec<u64> {
    let window = 1 + Random::new(seed).below(6);
    let (queue, stages) = (ReorderQueue::new(limits(window as usize, usize::MAX)), Stages::new(2));
    let staged = [const { AtomicU64::new(0) }; 2];
    let consumed = Mutex::new(Vec::new());
    // Some units weigh more than others, and some more than the window.
    let weight = |number: u64| if number % 5 == 3 { number % 9 } else { 1 };
    let source = Mutex::new(|number| Ok::<_, ()>((number < count).then_some((weight(number) as usize, number))));
    let stop = || {
        queue.stop();
        stages.stop();
    };
    let one = |random: &mut Random| -> Result<bool, ()> {
        let Some((mut sender, number)) = queue.take(&source)? else { return Ok(false) };
        assert_eq!(sender.number(), number);
        let first = consumed.lock().len() as u64;
        let taken: u64 = (first..=number).map(weight).sum();
        assert!(first >= number || taken <= window, "ticket {number} is outside the window");
        random.delay();
        let ticket = StageTicket::new(number, &stages);
        for (stage, next) in staged.iter().enumerate() {
            let enter = || assert_eq!(next.fetch_add(1, Ordering::SeqCst), number);
            if ticket.pass(stage, enter).is_none() {
                return Ok(false);
            }
            random.delay();
        }
        match trouble {
            Trouble::PanicAt(at) if at == number => panic!("as the test wants"),
            Trouble::StopAt(at) if at == number => stop(),
            _ => (),
        }
        if !sender.push(number, 1) {
            return Ok(false);
        }
        sender.finish();
        queue.drain(|number| {
            if trouble == Trouble::FailAt(number) {
                return Err(());
            }
            let mut consumed = consumed.lock();
            assert_eq!(consumed.len() as u64, number);
            consumed.push(number);
            Ok(())
        })
    };
    thread::scope(|scope| {
        for worker in 0..threads {
            let (one, stop) = (&one, &stop);
            scope.spawn(move || {
                let mut random = Random::new(seed * 31 + worker);
                loop {
                    match catch_unwind(AssertUnwindSafe(|| one(&mut random))) {
                        Ok(Ok(true)) => (),
                        Ok(Ok(false)) => return,
                        Ok(Err(())) => return stop(),
                        Err(panic) => {
                            stop();
                            // Only the wanted panic: an assertion must fail the test.
                            let is_wanted = panic.downcast_ref::<&str>() == Some(&"as the test wants");
                            if !is_wanted {
                                std::panic::resume_unwind(panic);
                            }
                            return;
                        }
                    }
                }
            });
        }
    });
    consumed.into_inner()
}

#[test]
fn workers_consume_all_items_in_order_within_the_window() {
    for seed in 0..20 {
        let consumed = drain_run(seed, 1 + seed % 5, 300, Trouble::None);
        assert!(consumed.into_iter().eq(0..300), "seed {seed}");
    }
}

#[test]
fn nothing_is_consumed_after_a_stop_a_panic_or_an_error() {
    for seed in 0..20 {
        let at = Random::new(seed + 99).below(200);
        for trouble in [Trouble::StopAt(at), Trouble::PanicAt(at), Trouble::FailAt(at)] {
            let consumed = drain_run(seed, 1 + seed % 5, 200, trouble).len() as u64;
            assert!(consumed <= at, "seed {seed}: {trouble:?}: {consumed} items were consumed");
            assert!(trouble != Trouble::FailAt(at) || consumed == at, "seed {seed}: {trouble:?}");
        }
    }
}

#[test]
fn held_bytes_exceed_the_limit_by_one_item_at_most() {
    const LONGEST: u64 = 60;
    for (seed, limit) in [0, 1, 50, 100, 1000].into_iter().enumerate() {
        let queue = ReorderQueue::new(limits(16, limit));
        let source = Mutex::new(|number| Ok::<_, ()>((number < 200).then_some((1, number))));
        let most = AtomicUsize::new(0);
        thread::scope(|scope| {
            for worker in 0..4 {
                let (queue, source, most) = (&queue, &source, &most);
                scope.spawn(move || {
                    let mut random = Random::new(seed as u64 * 7 + worker);
                    while let Some((mut sender, number)) = queue.take(source).unwrap() {
                        for item in 0..number % 4 {
                            random.delay();
                            assert!(sender.push((number, item), random.below(LONGEST) as usize));
                            most.fetch_max(queue.state.lock().held, Ordering::Relaxed);
                        }
                        sender.finish();
                    }
                });
            }
            let mut random = Random::new(seed as u64);
            let expected = (0..200).flat_map(|number| (0..number % 4).map(move |item| (number, item)));
            for expected in expected {
                random.delay();
                assert_eq!(queue.pop(), Some(Ok(expected)));
            }
            assert_eq!(queue.pop(), None);
        });
        assert_eq!(queue.state.lock().held, 0);
        assert!(most.into_inner() < limit + LONGEST as usize, "limit {limit}");
    }
}

#[test]
fn an_abandoned_ticket_is_reported_in_its_place() {
    let work = |number: u64, sender: &mut ItemSender<'_, u64>| {
        Random::new(number).delay();
        assert!(sender.push(number, 1));
        assert!(number % 7 != 3, "as the test wants");
    };
    for threads in [1, 3] {
        let source = |number| (number < 50).then_some((1, number));
        let items = ReadAhead::spawn(threads, limits(5, 3), source, work).unwrap();
        let expected =
            (0..50).flat_map(|number| [Ok(number)].into_iter().chain((number % 7 == 3).then_some(Err(Abandoned))));
        assert!(items.eq(expected), "{threads} threads");
    }
}

#[test]
fn the_consumer_may_skip_tickets() {
    for seed in 0..20 {
        let source = |number| (number < 400).then_some((1, number));
        let work = move |number: u64, sender: &mut ItemSender<'_, u64>| {
            Random::new(seed * 1000 + number).delay();
            sender.push(number, 10);
        };
        let mut items = ReadAhead::spawn(3, limits(4, 25), source, work).unwrap();
        let mut random = Random::new(seed);
        let mut number = 0;
        while number < 400 {
            items.skip_to(number);
            assert_eq!(items.next(), Some(Ok(number)), "seed {seed}");
            number += 1 + random.below(10);
        }
    }
}

#[test]
fn dropping_the_consumer_stops_the_threads() {
    let alive = std::sync::Arc::new(());
    let held = std::sync::Arc::clone(&alive);
    let work = move |number: u64, sender: &mut ItemSender<'_, u64>| {
        let _held = &held;
        while sender.push(number, 10) {}
    };
    let mut items = ReadAhead::spawn(2, limits(4, 25), |number| Some((1, number)), work).unwrap();
    assert_eq!(items.next(), Some(Ok(0)));
    drop(items);
    assert_eq!(std::sync::Arc::strong_count(&alive), 1);
}

#[test]
fn a_source_that_panics_is_an_abandoned_ticket() {
    let source = |number| if number == 5 { panic!("as the test wants") } else { Some((1, number)) };
    let work = |number: u64, sender: &mut ItemSender<'_, u64>| assert!(sender.push(number, 1));
    let items = ReadAhead::spawn(1, limits(3, 10), source, work).unwrap();
    assert!(items.eq((0..5).map(Ok).chain([Err(Abandoned)])));
}

/// What a source returns after an error or a panic means nothing, so it is not called again.
#[test]
fn nothing_is_taken_from_a_source_that_has_failed() {
    const FAILING: u64 = 5;
    for seed in 0..100 {
        let (queue, calls, failures) = (ReorderQueue::new(limits(8, 9)), AtomicU64::new(0), AtomicU64::new(0));
        let source = Mutex::new(|number| {
            calls.fetch_add(1, Ordering::Relaxed);
            match number {
                FAILING if seed % 2 == 0 => panic!("as the test wants"),
                FAILING => Err(()),
                _ => Ok(Some((1, number))),
            }
        });
        let work = |random: &mut Random| loop {
            random.delay();
            match catch_unwind(AssertUnwindSafe(|| queue.take(&source))) {
                Ok(Ok(Some((mut sender, number)))) => {
                    sender.push(number, 1);
                    sender.finish();
                }
                Ok(Ok(None)) => return,
                _ => {
                    failures.fetch_add(1, Ordering::Relaxed);
                    return;
                }
            }
        };
        thread::scope(|scope| {
            (0..3).for_each(|worker| drop(scope.spawn(move || work(&mut Random::new(seed * 31 + worker)))));
        });
        assert_eq!((calls.into_inner(), failures.into_inner()), (FAILING + 1, 1), "seed {seed}");
        let items = std::iter::from_fn(|| queue.pop());
        assert!(items.eq((0..FAILING).map(Ok).chain([Err(Abandoned)])), "seed {seed}");
    }
}

/// A worker that waits for space for its next item goes on when an item is consumed.
#[test]
fn draining_makes_space_for_further_items_of_a_ticket() {
    let queue = ReorderQueue::new(limits(4, 1));
    let source = Mutex::new(|number| Ok::<_, ()>((number < 2).then_some((1, number))));
    let consumed = Mutex::new(Vec::new());
    let drain = || {
        let consume = |item| {
            consumed.lock().push(item);
            Ok::<_, ()>(())
        };
        assert_eq!(queue.drain(consume), Ok(true));
    };
    let (mut first, _) = queue.take(&source).unwrap().unwrap();
    let (second, _) = queue.take(&source).unwrap().unwrap();
    thread::scope(|scope| {
        let worker = scope.spawn(|| {
            assert!(first.push(10, 1) && first.push(11, 1));
            first.finish();
            drain();
        });
        // The first item is in the queue, and the worker waits or will wait.
        while queue.state.lock().held == 0 {
            thread::yield_now();
        }
        second.finish();
        drain();
        worker.join().unwrap();
    });
    assert_eq!(*consumed.lock(), [10, 11]);
}
