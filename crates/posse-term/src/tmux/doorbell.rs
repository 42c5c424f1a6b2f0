//! How the shim gets our attention: a few bytes in the pane's output that nobody else can know.
//!
//! They stand exactly between what the program printed and what comes after, which no file or signal could tell. tmux
//! draws nothing for them, we take them out. What happened is in the notes; the bell only says that it is time to look.

/// Begins every ring. It ends whatever sequence a killed program left unfinished, and is rare enough that holding it
/// back until the next byte delays nobody's output.
const CANCEL: u8 = 0x18;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ring {
    /// The program has begun.
    Begun,
    /// It has ended, or could not begin, and all it printed comes before this.
    Over,
}

impl Ring {
    fn mark(self) -> u8 {
        match self {
            Ring::Begun => b'+',
            Ring::Over => b'-',
        }
    }
}

/// Known to the shim and to us. Without it any program could announce its own end, or that of whoever prints a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Secret(String);

impl Secret {
    pub(super) fn new(random: [u8; 16]) -> Self {
        Self(random.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        (text.len() == 32 && text.bytes().all(|b| b.is_ascii_hexdigit())).then(|| Self(text.to_owned()))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// What the shim prints. 7502 is a number no terminal knows.
    pub(super) fn bell(&self, ring: Ring) -> Vec<u8> {
        format!("\x18\x1b]7502;{}{}\x1b\\", ring.mark() as char, self.0).into_bytes()
    }
}

/// Takes the rings out of one pane's output.
pub(super) struct Doorbell {
    begun: Vec<u8>,
    over: Vec<u8>,
    /// The beginning of a ring that the output ended with.
    held: Vec<u8>,
    /// It has rung for the last time: whatever comes now is not the program's.
    ended: bool,
}

impl Doorbell {
    pub(super) fn new(secret: &Secret) -> Self {
        Self { begun: secret.bell(Ring::Begun), over: secret.bell(Ring::Over), held: Vec::new(), ended: false }
    }

    /// The program's own bytes of these, cut anywhere, and the last ring among them.
    pub(super) fn listen(&mut self, bytes: Vec<u8>) -> (Vec<u8>, Option<Ring>) {
        if self.held.is_empty() && memchr::memchr(CANCEL, &bytes).is_none() {
            return (if self.ended { Vec::new() } else { bytes }, None);
        }
        let (mut out, mut ring) = (Vec::with_capacity(bytes.len()), None);
        for byte in bytes {
            self.held.push(byte);
            if self.held == self.begun || self.held == self.over {
                ring = Some(if self.held == self.over { Ring::Over } else { Ring::Begun });
                self.ended |= ring == Some(Ring::Over);
                self.held.clear();
            } else if !self.could_ring() {
                // The first byte occurs in a ring only once, so only the last byte can begin another.
                self.held.pop();
                out.append(&mut self.give_up());
                self.held.push(byte);
                if !self.could_ring() {
                    out.append(&mut self.give_up());
                }
            }
        }
        (out, ring)
    }

    fn could_ring(&self) -> bool {
        self.begun.starts_with(&self.held) || self.over.starts_with(&self.held)
    }

    /// What was held back because it could have been the beginning of a ring.
    pub(super) fn give_up(&mut self) -> Vec<u8> {
        let held = std::mem::take(&mut self.held);
        if self.ended { Vec::new() } else { held }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn secret() -> Secret {
        Secret::new([7; 16])
    }

    /// All of it in chunks of this length: the clean bytes and the rings.
    fn listen(bytes: &[u8], chunk: usize) -> (Vec<u8>, Vec<Ring>) {
        let mut doorbell = Doorbell::new(&secret());
        let (mut clean, mut rings) = (Vec::new(), Vec::new());
        for chunk in bytes.chunks(chunk) {
            let (bytes, ring) = doorbell.listen(chunk.to_vec());
            clean.extend(bytes);
            rings.extend(ring);
        }
        clean.extend(doorbell.give_up());
        (clean, rings)
    }

    #[test]
    fn rings_are_heard_and_taken_out() {
        let (begun, over) = (secret().bell(Ring::Begun), secret().bell(Ring::Over));
        let stream =
            [b"one\x18\x1b]", &begun[..], b"two\x18", &begun[..9], &over, b"late\x18", &over, &over[..9]].concat();
        let clean = [b"one\x18\x1b]two\x18", &begun[..9]].concat();
        for chunk in [1, 2, 7] {
            let expected = (clean.clone(), vec![Ring::Begun, Ring::Over, Ring::Over]);
            assert_eq!(listen(&stream, chunk), expected, "in chunks of {chunk}");
        }
        assert_eq!(listen(&stream, 1000), (clean, vec![Ring::Over]), "of several the last one counts");
    }

    #[test]
    fn a_foreign_ring_is_only_output() {
        let other = Secret::new([8; 16]).bell(Ring::Over);
        assert_eq!(listen(&other, 5), (other, vec![]));
    }

    #[test]
    fn a_secret_is_read_back() {
        assert_eq!(Secret::parse(secret().as_str()), Some(secret()));
        assert_eq!(Secret::parse("7"), None);
        assert_eq!(Secret::parse(&"g".repeat(32)), None);
    }

    proptest! {
        #[test]
        fn nothing_is_lost_without_a_ring(
            bytes in prop::collection::vec(prop_oneof![Just(CANCEL), Just(0x1b), Just(b']'), any::<u8>()], 0..100),
            chunk in 1usize..9,
        ) {
            prop_assert_eq!(listen(&bytes, chunk), (bytes, vec![]));
        }
    }
}
