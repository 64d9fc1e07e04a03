//! Brokers that keep their connections and answer nothing, as a process that is stopped does. Time is the test's own.

use tokio::{
    io::{AsyncWrite, AsyncWriteExt as _},
    time::{Instant, sleep},
};

use super::{waits::ANSWER_LIMIT, *};

/// Far longer than any wait for a broker.
const LONG: Duration = Duration::from_secs(300);

/// A passage between a runner and a broker, both the test's own.
struct Between {
    passage: Passage,
    program: mpsc::UnboundedSender<NetworkRequest>,
    runner: WebSocketStream<DuplexStream>,
    decoder: Decoder,
    _writer: AbortOnDrop,
}

impl Between {
    async fn start(runner_pipe: usize) -> Self {
        let (up, down) = duplex(runner_pipe);
        let up = WebSocketStream::from_raw_socket(up, Role::Client, None).await;
        let runner = WebSocketStream::from_raw_socket(down, Role::Server, None).await;
        let (sender, writer) = RunnerSender::start(up);
        let (program, inbox) = mpsc::unbounded_channel();
        let passage = Passage {
            access: access(),
            runner: Runner { sender, record: Arc::default() },
            inbox,
            room: Arc::new(Room(Mutex::new(0))),
        };
        Self { passage, program, runner, decoder: Decoder::new(Direction::ToRunner), _writer: writer }
    }

    /// Sends a frame of the program, which the record knows before the passage does.
    fn say(&self, request: NetworkRequest) {
        lock(&self.passage.runner.record).on_request(&request, Timestamp::now());
        self.program.send(request).unwrap();
    }

    /// Passes frames on a new link from the next connection of the program on, and returns the time for which the link held.
    async fn pass(&mut self, link: RunLink) -> Duration {
        let began = Instant::now();
        let first = self.passage.next_open().await.unwrap();
        let passing = self.passage.pass(link, NetworkRequest::Open(first));
        timeout(2 * LONG, passing).await.expect("the link ends").unwrap();
        began.elapsed()
    }

    async fn next(&mut self) -> NetworkResponse {
        next_of(&mut self.runner, &mut self.decoder).await
    }

    /// Returns so many frames that the runner gets, as text.
    async fn got(&mut self, count: usize) -> Vec<String> {
        let mut got = Vec::new();
        while got.len() < count {
            got.push(match self.next().await {
                NetworkResponse::Opened(opened) => format!("{} {}", opened.channel, opened.verdict.as_str()),
                NetworkResponse::Close(channel, kind) => format!("{channel} {kind:?}"),
                NetworkResponse::Data(channel, bytes) => format!("{channel} {} bytes", bytes.len()),
                NetworkResponse::Window(channel, _) => format!("{channel} window"),
            });
        }
        got.sort();
        got
    }
}

fn open(channel: Channel) -> NetworkRequest {
    NetworkRequest::Open(OpenChannel { channel, host: "a.dev".into(), port: 443 })
}

fn allowed(channel: Channel) -> NetworkResponse {
    NetworkResponse::Opened(ChannelOpened { channel, verdict: Verdict::Allowed, address: None })
}

fn link(pipe: usize) -> (RunLink, DuplexStream) {
    let (operator, broker) = duplex(pipe);
    (RunLink::new("broker:8443".into(), operator), broker)
}

async fn answer(broker: &mut (impl AsyncWrite + Unpin), response: NetworkResponse) {
    broker.write_all(&response.encode().unwrap()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_silent_broker_loses_its_link_and_the_next_connection_gets_another() {
    let mut run = Between::start(1 << 20).await;
    let (stalled, mut broker) = link(1 << 20);
    run.say(open(1));
    run.say(open(2));
    answer(&mut broker, allowed(1)).await;
    assert_eq!(run.pass(stalled).await, ANSWER_LIMIT);
    assert_eq!(
        run.got(5).await,
        ["1 Allowed", "1 BrokerUnavailable", "1 Reset", "2 BrokerUnavailable", "2 Reset"]
    );
    let (working, mut broker) = link(1 << 20);
    run.say(open(3));
    let host = async {
        answer(&mut broker, allowed(3)).await;
        answer(&mut broker, NetworkResponse::Data(3, vec![0; 9])).await;
        sleep(LONG).await;
        drop(broker);
    };
    let (held, ()) = tokio::join!(run.pass(working), host);
    assert_eq!(held, LONG, "a link without a connection that waits is not ended");
    assert_eq!(run.got(4).await, ["3 9 bytes", "3 Allowed", "3 BrokerUnavailable", "3 Reset"]);
    let record = std::mem::take(&mut *lock(&run.passage.runner.record));
    let (connections, verdicts) = record.finish(Timestamp::now());
    assert_eq!(verdicts, [(Verdict::BrokerUnavailable, 3)].into());
    assert_eq!(connections.list.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_broker_that_takes_no_frames_loses_its_link() {
    let mut run = Between::start(1 << 20).await;
    let (stalled, mut broker) = link(64);
    run.say(open(1));
    for _ in 0..40 {
        run.say(NetworkRequest::Data(1, vec![0; 100]));
    }
    // It waits for nothing but room: the answer is there, and no other connection is requested.
    answer(&mut broker, allowed(1)).await;
    assert_eq!(run.pass(stalled).await, ANSWER_LIMIT);
    assert_eq!(run.got(3).await, ["1 Allowed", "1 BrokerUnavailable", "1 Reset"]);
    assert!(run.passage.inbox.try_recv().is_err(), "frames of the lost link are forgotten");
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_the_program_closes_is_not_waited_for() {
    let mut run = Between::start(1 << 20).await;
    let (quiet, broker) = link(1 << 20);
    run.say(open(1));
    run.say(NetworkRequest::Close(1, CloseKind::Reset));
    let end = async {
        sleep(LONG).await;
        drop(broker);
    };
    let (held, ()) = tokio::join!(run.pass(quiet), end);
    assert_eq!(held, LONG);
}

#[tokio::test(start_paused = true)]
async fn a_runner_that_takes_nothing_is_not_the_brokers_fault() {
    const FRAMES: usize = 400;
    let Between { mut passage, program, mut runner, mut decoder, _writer } = Between::start(64).await;
    let (working, broker) = link(1 << 20);
    for channel in [1, 2] {
        lock(&passage.runner.record).on_request(&open(channel), Timestamp::now());
    }
    program.send(open(2)).unwrap();
    let passing = passage.pass(working, open(1));
    let (mut reader, mut writer) = tokio::io::split(broker);
    let host = async {
        answer(&mut writer, allowed(1)).await;
        for _ in 0..FRAMES {
            answer(&mut writer, NetworkResponse::Data(1, vec![0; 100])).await;
        }
        // The answer stands behind data that the runner does not take.
        answer(&mut writer, allowed(2)).await;
        tokio::io::copy(&mut reader, &mut tokio::io::sink()).await.unwrap();
    };
    let slow = async {
        sleep(LONG).await;
        loop {
            if let NetworkResponse::Opened(opened) = next_of(&mut runner, &mut decoder).await
                && opened.channel == 2
            {
                return opened.verdict;
            }
        }
    };
    tokio::select! {
        passed = passing => panic!("the link ended: {passed:?}"),
        () = host => panic!("the link ended"),
        verdict = slow => assert_eq!(verdict, Verdict::Allowed),
    }
}
