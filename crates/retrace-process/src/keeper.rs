//! The keeper: the one thread that starts programs and ends them.

use std::collections::BTreeSet;
use std::io;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::{oneshot, watch};
use tokio::time::timeout;

use crate::guard::Guard;
use crate::system::{self, Signal};

/// How long the system may take to start a program.
const UNTIL_STARTED: Duration = Duration::from_secs(60);
/// How long a program that was let go may take to end by itself, before it is asked to.
const UNTIL_ASKED: Duration = Duration::from_secs(1);
/// How long until it is killed.
const UNTIL_KILLED: Duration = Duration::from_secs(2);

/// A child process and its pipes. When it is dropped, the process ends: by itself, or with its group.
pub(crate) struct Owned {
    pub(crate) stdin: Option<ChildStdin>,
    pub(crate) stdout: Option<ChildStdout>,
    pub(crate) stderr: Option<ChildStderr>,
    kept: Arc<Kept>,
    /// Tells the thread that waits for the process that its owner is gone.
    gone: Sender<Ending>,
}

/// A child process, as its owner and the threads that end it share it.
struct Kept {
    id: u32,
    /// Until it was reaped. While this is locked and holds it, its id and that of its group are its own.
    child: Mutex<Option<Child>>,
    status: watch::Sender<Option<ExitStatus>>,
    /// What is dropped when the process has ended and its owner is gone.
    belongings: Mutex<Vec<Box<dyn Send>>>,
    /// Whether it was.
    is_over: watch::Sender<bool>,
}

enum Job {
    Start { command: Command, reply: oneshot::Sender<io::Result<Owned>> },
    End(Arc<Kept>),
}

/// Starts a program.
pub(crate) async fn start(command: Command) -> io::Result<Owned> {
    let (reply, answer) = oneshot::channel();
    send(Job::Start { command, reply })?;
    // A program on a file system that does not answer is started never.
    let late =
        || io::Error::new(io::ErrorKind::TimedOut, format!("the system has not started it after {UNTIL_STARTED:?}"));
    timeout(UNTIL_STARTED, answer).await.map_err(|_| late())?.map_err(|_| lost())?
}

/// Blocks until the processes whose owners are gone by now have ended, which takes at most three seconds, and says whether
/// they have. To be called before the program ends, so that what they work in is removed.
pub fn settle() -> bool {
    let (ending, one_less) = &ENDING;
    let ending = lock(ending);
    let last = ending.last().copied();
    let is_left = |ending: &mut BTreeSet<u64>| ending.first().copied() <= last && !ending.is_empty();
    let limit = UNTIL_KILLED + Duration::from_secs(1);
    let waited = one_less.wait_timeout_while(ending, limit, is_left);
    !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
}

impl Owned {
    pub(crate) fn id(&self) -> u32 {
        self.kept.id
    }

    /// How it ended, if it has.
    pub(crate) fn status(&self) -> watch::Receiver<Option<ExitStatus>> {
        self.kept.status.subscribe()
    }

    /// Whether it has ended, its owner is gone, and what it kept was dropped.
    pub(crate) fn is_over(&self) -> watch::Receiver<bool> {
        self.kept.is_over.subscribe()
    }

    /// Drops this when the process has ended and its owner is gone.
    pub(crate) fn keep(&self, belonging: Box<dyn Send>) {
        lock(&self.kept.belongings).push(belonging);
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        self.stdin = None;
        // The thread waits for this; and without a keeper there is no process.
        let _ = self.gone.send(Ending::new());
        let _ = send(Job::End(Arc::clone(&self.kept)));
    }
}

impl Kept {
    /// Sends a signal to its group, unless it was reaped.
    fn signal(&self, signal: Signal) {
        if let Some(child) = &mut *lock(&self.child) {
            system::signal_group(child, signal);
        }
    }

    /// Blocks until it has ended, ends what it started, and reaps it; then until its owner is gone, and drops what it kept.
    /// That may take its time, and the owner may live in a runtime.
    fn see_out(&self, guard: &Mutex<Guard>, owner: &Receiver<Ending>) {
        system::wait_unreaped(&self.child, self.id);
        let mut child = lock(&self.child);
        let status = child.as_mut().map(|child| {
            system::signal_group(child, Signal::KILL);
            // Before it is reaped, since then another group may get the id.
            lock(guard).forget(self.id);
            // If somebody else has reaped it, nobody knows how it ended.
            child.wait().unwrap_or_default()
        });
        *child = None;
        drop(child);
        self.status.send_replace(status);
        let ending = owner.recv();
        drop(std::mem::take(&mut *lock(&self.belongings)));
        self.is_over.send_replace(true);
        drop(ending);
    }
}

/// Runs the keeper. It ends with this process only, since with it would end all that it started.
fn keep(jobs: &Receiver<Job>) {
    let guard = Arc::new(Mutex::new(Guard::start()));
    let mut due: Vec<(Instant, Signal, Arc<Kept>)> = Vec::new();
    loop {
        let next = due.iter().map(|(at, ..)| *at).min();
        let job = match next {
            Some(at) => jobs.recv_timeout(at.saturating_duration_since(Instant::now())),
            None => jobs.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match job {
            // If nobody waits any more, what was started is dropped here.
            Ok(Job::Start { command, reply }) => drop(reply.send(start_here(command, &guard))),
            Ok(Job::End(kept)) => {
                let now = Instant::now();
                due.push((now + UNTIL_ASKED, Signal::TERM, Arc::clone(&kept)));
                due.push((now + UNTIL_KILLED, Signal::KILL, kept));
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        let now = Instant::now();
        due.retain(|(at, signal, kept)| {
            if *at <= now {
                kept.signal(*signal);
            }
            *at > now && lock(&kept.child).is_some()
        });
    }
}

/// Starts a program in this thread, whose end would be its own, and a thread that waits for it.
fn start_here(mut command: Command, guard: &Arc<Mutex<Guard>>) -> io::Result<Owned> {
    system::lead_group(&mut command);
    system::die_with_this_thread(&mut command);
    let mut child = command.spawn()?;
    let id = child.id();
    lock(guard).watch(id);
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let kept = Arc::new(Kept {
        id,
        child: Mutex::new(Some(child)),
        status: watch::Sender::new(None),
        belongings: Mutex::default(),
        is_over: watch::Sender::new(false),
    });
    let (gone, owner) = mpsc::channel();
    let waiter = thread::Builder::new().name(format!("retrace-wait-{id}")).spawn({
        let (kept, guard) = (Arc::clone(&kept), Arc::clone(guard));
        move || kept.see_out(&guard, &owner)
    });
    if let Err(error) = waiter {
        kept.signal(Signal::KILL);
        // It never had an owner.
        kept.see_out(guard, &mpsc::channel().1);
        return Err(error);
    }
    Ok(Owned { stdin, stdout, stderr, kept, gone })
}

fn send(job: Job) -> io::Result<()> {
    static KEEPER: OnceLock<Option<Sender<Job>>> = OnceLock::new();
    let keeper = KEEPER.get_or_init(|| {
        let (sender, jobs) = mpsc::channel();
        let thread = thread::Builder::new().name("retrace-keeper".to_owned()).spawn(move || keep(&jobs));
        thread.ok().map(|_| sender)
    });
    keeper.as_ref().ok_or_else(lost)?.send(job).map_err(|_| lost())
}

fn lost() -> io::Error {
    io::Error::other("the thread that starts programs could not be started")
}

/// The processes that end and whose owners are gone, numbered in that order.
static ENDING: (Mutex<BTreeSet<u64>>, Condvar) = (Mutex::new(BTreeSet::new()), Condvar::new());

/// One of them.
struct Ending(u64);

impl Ending {
    fn new() -> Self {
        static N_ENDED: AtomicU64 = AtomicU64::new(0);
        let mut ending = lock(&ENDING.0);
        let number = N_ENDED.fetch_add(1, Ordering::Relaxed);
        ending.insert(number);
        Self(number)
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        lock(&ENDING.0).remove(&self.0);
        ENDING.1.notify_all();
    }
}

/// What these locks protect is whole whenever they are free.
fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
