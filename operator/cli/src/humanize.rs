//! Spans of time for people: ages as kubectl writes them, and durations of runs.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const YEAR: i64 = 365 * DAY;

/// Age of an object; `-` if its creation time is unknown.
pub(crate) fn age(created: Option<&Time>, now: Timestamp) -> String {
    created.map_or_else(|| "-".to_owned(), |created| short(now.duration_since(created.0).as_secs()))
}

/// Time until `end`, rounded to the nearest unit that is shown: a key made for 90 days has `90d` left.
pub(crate) fn remaining(end: &Time, now: Timestamp) -> String {
    let seconds = end.0.duration_since(now).as_secs();
    let half_unit = match seconds {
        ..600 => 0,
        600..28_800 => MINUTE / 2,
        28_800..691_200 => HOUR / 2,
        _ => DAY / 2,
    };
    short(seconds + half_unit)
}

/// Formats seconds like kubectl: two units as long as the smaller one matters.
fn short(seconds: i64) -> String {
    let seconds = seconds.max(0);
    let two = |first: i64, first_unit: char, second: i64, second_unit: char| {
        let (whole, rest) = (seconds / first, seconds % first / second);
        if rest == 0 {
            format!("{whole}{first_unit}")
        } else {
            format!("{whole}{first_unit}{rest}{second_unit}")
        }
    };
    match seconds {
        0..120 => format!("{seconds}s"),
        120..600 => two(MINUTE, 'm', 1, 's'),
        600..10_800 => format!("{}m", seconds / MINUTE),
        10_800..28_800 => two(HOUR, 'h', MINUTE, 'm'),
        28_800..172_800 => format!("{}h", seconds / HOUR),
        172_800..691_200 => two(DAY, 'd', HOUR, 'h'),
        691_200..63_072_000 => format!("{}d", seconds / DAY),
        _ => two(YEAR, 'y', DAY, 'd'),
    }
}

/// Milliseconds of a run: `45ms`, `1.2s`, `2m5s`.
pub(crate) fn duration(millis: u64) -> String {
    match millis {
        0..1_000 => format!("{millis}ms"),
        1_000..60_000 => format!("{}.{}s", millis / 1_000, millis % 1_000 / 100),
        _ => format!("{}m{}s", millis / 60_000, millis % 60_000 / 1_000),
    }
}

/// A number of bytes with one digit behind the point, such as `1.5 KiB`.
pub(crate) fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut tenths = bytes.saturating_mul(10) / 1024;
    let mut unit = UNITS[0];
    for larger in &UNITS[1..] {
        if tenths < 10_240 {
            break;
        }
        tenths /= 1024;
        unit = larger;
    }
    format!("{}.{} {unit}", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_written_as_kubectl_writes_them() {
        for (seconds, expected) in [
            (-5, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (125, "2m5s"),
            (600, "10m"),
            (10_800, "3h"),
            (11_100, "3h5m"),
            (28_800, "8h"),
            (172_800, "2d"),
            (180_000, "2d2h"),
            (691_200, "8d"),
            (63_072_000 + 86_400, "2y1d"),
        ] {
            assert_eq!(short(seconds), expected, "{seconds}");
        }
    }

    #[test]
    fn the_remaining_time_is_rounded_to_the_nearest_unit() {
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let end = |text: &str| remaining(&Time(text.parse().unwrap()), now);
        assert_eq!(end("2026-03-31T23:59:58Z"), "90d");
        assert_eq!(end("2026-01-01T11:59:58Z"), "12h");
        assert_eq!(end("2026-01-01T00:00:42Z"), "42s");
    }

    #[test]
    fn an_unknown_age_is_a_dash() {
        let at = |text: &str| -> Timestamp { text.parse().unwrap() };
        let created = Time(at("2026-01-01T00:00:00Z"));
        assert_eq!(age(Some(&created), at("2026-01-01T00:00:42Z")), "42s");
        assert_eq!(age(None, at("2026-01-01T00:00:42Z")), "-");
    }

    #[test]
    fn durations_keep_two_significant_units() {
        for (millis, expected) in
            [(0, "0ms"), (45, "45ms"), (999, "999ms"), (1_250, "1.2s"), (59_999, "59.9s"), (125_000, "2m5s")]
        {
            assert_eq!(duration(millis), expected);
        }
    }

    #[test]
    fn bytes_have_a_unit_of_their_size() {
        for (count, text) in
            [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (1 << 20, "1.0 MiB"), (5 << 40, "5.0 TiB")]
        {
            assert_eq!(bytes(count), text);
        }
    }
}
