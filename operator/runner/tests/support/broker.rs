//! The test's side of a program's connections: dials real servers of this machine for the names that a test gives them.
//!
//! It keeps to the windows in both directions and judges nothing: refusals come from the runner alone, or from `verdicts`.

use std::collections::{BTreeMap, HashMap};
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::process::ChildStdin;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};

use skillet_protocol::{
    Channel, ChannelOpened, CloseKind, INITIAL_WINDOW_BYTES, MAX_NETWORK_DATA, NetworkRequest,
    NetworkResponse, OpenChannel, OperatorMessage, RefusedConnection, Verdict,
};

pub struct Broker {
    hosts: BTreeMap<(String, u16), SocketAddr>,
    /// Answers to `Open` other than dialing.
    pub verdicts: BTreeMap<(String, u16), Verdict>,
    /// Never answers `Open` of this port.
    pub silent_port: Option<u16>,
    replies: Replies,
    channels: HashMap<Channel, Dialed>,
    pub opened: Vec<(String, u16)>,
    pub refused: Vec<RefusedConnection>,
    pub closed: Vec<(Channel, CloseKind)>,
    /// Bytes of the program, by channel.
    pub written: HashMap<Channel, usize>,
    /// The broker tells the runner of no room, after the first window.
    pub withholds_windows: bool,
    /// Writes to hosts at once instead of in a thread: faster, and stuck if a host does not read.
    pub is_direct: bool,
}

struct Dialed {
    to_host: Sender<Option<Vec<u8>>>,
    window: Arc<Window>,
    stream: TcpStream,
}

#[derive(Default)]
struct Window {
    bytes: Mutex<u64>,
    grown: Condvar,
}

/// The way to the runner; gone when the test hangs up.
#[derive(Clone)]
pub struct Replies(Weak<Mutex<ChildStdin>>);

impl Replies {
    pub fn send(&self, response: NetworkResponse) {
        let Some(stdin) = self.0.upgrade() else { return };
        let bytes = OperatorMessage::Network(response).encode().unwrap();
        let _ = stdin.lock().unwrap_or_else(PoisonError::into_inner).write_all(&bytes);
    }
}

impl Broker {
    pub fn new(hosts: &[(&str, u16, SocketAddr)], stdin: Weak<Mutex<ChildStdin>>) -> Self {
        Self {
            hosts: hosts.iter().map(|(name, port, at)| (((*name).to_owned(), *port), *at)).collect(),
            verdicts: BTreeMap::new(),
            silent_port: None,
            replies: Replies(stdin),
            channels: HashMap::new(),
            opened: vec![],
            refused: vec![],
            closed: vec![],
            written: HashMap::new(),
            withholds_windows: false,
            is_direct: false,
        }
    }

    pub fn replies(&self) -> Replies {
        self.replies.clone()
    }

    pub fn take(&mut self, request: NetworkRequest) {
        match request {
            NetworkRequest::Open(open) => self.open(open),
            NetworkRequest::Data(channel, bytes) => {
                assert!(!bytes.is_empty() && bytes.len() <= MAX_NETWORK_DATA);
                *self.written.entry(channel).or_default() += bytes.len();
                let Some(dialed) = self.channels.get_mut(&channel) else { return };
                if self.is_direct {
                    let _ = dialed.stream.write_all(&bytes);
                    let window = u32::try_from(bytes.len()).unwrap();
                    self.replies.send(NetworkResponse::Window(channel, window));
                } else {
                    let _ = dialed.to_host.send(Some(bytes));
                }
            }
            NetworkRequest::Window(channel, bytes) => {
                if let Some(dialed) = self.channels.get(&channel) {
                    dialed.window.grow(bytes.into());
                }
            }
            NetworkRequest::Close(channel, kind) => {
                self.closed.push((channel, kind));
                match kind {
                    CloseKind::End => {
                        if let Some(dialed) = self.channels.get(&channel) {
                            let _ = dialed.to_host.send(None);
                        }
                    }
                    CloseKind::Reset => {
                        if let Some(dialed) = self.channels.remove(&channel) {
                            let _ = dialed.stream.shutdown(Shutdown::Both);
                            dialed.window.grow(u64::from(u32::MAX));
                        }
                    }
                }
            }
            NetworkRequest::Refused(refused) => self.refused.push(refused),
        }
    }

    fn open(&mut self, open: OpenChannel) {
        let OpenChannel { channel: number, host, port } = open;
        self.opened.push((host.clone(), port));
        if self.silent_port == Some(port) {
            return;
        }
        let key = (host, port);
        let verdict = self.verdicts.get(&key).copied();
        let answer =
            |verdict| NetworkResponse::Opened(ChannelOpened { channel: number, verdict, address: None });
        let dialed = match (verdict, self.hosts.get(&key)) {
            (Some(verdict), _) => Err(verdict),
            (None, None) => Err(Verdict::NameNotFound),
            (None, Some(at)) => TcpStream::connect(at).map_err(|_| Verdict::ConnectFailed),
        };
        let stream = match dialed {
            Err(verdict) => return self.replies.send(answer(verdict)),
            Ok(stream) => stream,
        };
        stream.set_nodelay(true).unwrap();
        self.replies.send(answer(Verdict::Allowed));
        let window = Arc::new(Window { bytes: Mutex::new(INITIAL_WINDOW_BYTES.into()), ..Window::default() });
        let (to_host, written) = channel::<Option<Vec<u8>>>();
        let (mut reader, mut writer) = (stream.try_clone().unwrap(), stream.try_clone().unwrap());
        let (replies, room) = (self.replies.clone(), Arc::clone(&window));
        std::thread::spawn(move || {
            let mut buffer = vec![0; MAX_NETWORK_DATA];
            loop {
                let most = room.wait().min(MAX_NETWORK_DATA as u64);
                match reader.read(&mut buffer[..usize::try_from(most).unwrap()]) {
                    Ok(0) => return replies.send(NetworkResponse::Close(number, CloseKind::End)),
                    Ok(length) => {
                        room.take(length as u64);
                        replies.send(NetworkResponse::Data(number, buffer[..length].to_vec()));
                    }
                    Err(_) => return replies.send(NetworkResponse::Close(number, CloseKind::Reset)),
                }
            }
        });
        let (replies, withholds) = (self.replies.clone(), self.withholds_windows);
        std::thread::spawn(move || {
            while let Ok(piece) = written.recv() {
                let Some(bytes) = piece else {
                    let _ = writer.shutdown(Shutdown::Write);
                    continue;
                };
                if writer.write_all(&bytes).is_ok() && !withholds {
                    let window = u32::try_from(bytes.len()).unwrap();
                    replies.send(NetworkResponse::Window(number, window));
                }
            }
        });
        self.channels.insert(number, Dialed { to_host, window, stream });
    }
}

impl Window {
    fn wait(&self) -> u64 {
        let mut bytes = self.bytes.lock().unwrap();
        while *bytes == 0 {
            bytes = self.grown.wait(bytes).unwrap();
        }
        *bytes
    }

    fn take(&self, length: u64) {
        *self.bytes.lock().unwrap() -= length;
    }

    fn grow(&self, length: u64) {
        *self.bytes.lock().unwrap() += length;
        self.grown.notify_all();
    }
}
