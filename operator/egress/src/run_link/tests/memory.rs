//! Memory of idle channels.

use super::*;

const RUNS: usize = 8;
const CHANNELS: usize = 250;

/// Prints the memory of an idle channel. Host and operator live in the same process, so that the broker's part is less.
#[tokio::test]
#[ignore = "a measurement; run it alone with --ignored --nocapture"]
async fn an_idle_channel_takes_at_most_16_kib() {
    let broker = TestBroker::start_with(|settings| settings.limits.tenant_connections = RUNS * 256).await;
    let listener = listen(&broker).await;
    let mut programs = Vec::new();
    for _ in 0..RUNS {
        programs.push(Program::start(&broker, &RunPolicy { connections: 256, ..allowed() }).await);
    }
    // Allocators and links are warm before the first look.
    let mut hosts = Vec::new();
    let mut before = 0;
    for channel in 0..=CHANNELS {
        if channel == 1 {
            before = resident();
        }
        for program in &mut programs {
            let number = channel.try_into().unwrap();
            program.connect(number).await;
            let mut host = accept(&listener).await;
            program.write(number, b"\0hello").await;
            read_exact(&mut host, 6).await;
            host.write_all(&[1; 4096]).await.unwrap();
            program.read(number, 4096).await;
            hosts.push(host);
        }
    }
    let each = (resident() - before) / (RUNS * CHANNELS);
    println!("{each} bytes for each of {} idle channels", RUNS * CHANNELS);
    assert!(each <= 16 << 10, "{each}");
}

/// Resident bytes of this process.
fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}
