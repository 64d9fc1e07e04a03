//! Repeatable random numbers for tests, and how many cases of each are tried.

/// Returns the number of cases in `SKILLET_CASES`, else `usual`. `make soak PROGRAM=fuzz` tries a million of each.
pub fn cases(usual: u64) -> u64 {
    std::env::var("SKILLET_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// A xorshift generator: the same seed gives the same test.
pub struct TestRng(u64);

impl TestRng {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn below(&mut self, limit: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        u32::try_from((self.0 >> 33) % u64::from(limit.max(1))).unwrap_or_default()
    }

    /// Returns up to `longest` characters of `alphabet`.
    pub fn text(&mut self, alphabet: &str, longest: u32) -> String {
        let letters: Vec<char> = alphabet.chars().collect();
        let length = self.below(longest + 1);
        let choices = u32::try_from(letters.len()).unwrap_or(u32::MAX);
        (0..length).map(|_| letters[self.below(choices) as usize]).collect()
    }
}
