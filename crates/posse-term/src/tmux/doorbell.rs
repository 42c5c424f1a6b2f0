//! How the shim gets our attention: a few bytes in the pane's output that nobody else can know.
//!
//! They stand exactly between what the program printed and what comes after, which no file or signal could tell. tmux
//! draws nothing for them, we take them out. What happened is in the notes; the bell only says that it is time to look.

/// Begins every bell. It ends whatever sequence a killed program left unfinished, and is rare enough that holding it
/// back until the next byte delays nobody's output.
const CANCEL: u8 = 0x18;

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
    pub(super) fn bell(&self) -> Vec<u8> {
        format!("\x18\x1b]7502;{}\x1b\\", self.0).into_bytes()
    }
}

/// Takes the bells out of one pane's output.
pub(super) struct Doorbell {
    bell: Vec<u8>,
    /// How much of a bell the output ended with.
    begun: usize,
}

impl Doorbell {
    pub(super) fn new(secret: &Secret) -> Self {
        Self { bell: secret.bell(), begun: 0 }
    }

    /// The program's own bytes of these, cut anywhere, and whether it rang.
    pub(super) fn listen(&mut self, bytes: Vec<u8>) -> (Vec<u8>, bool) {
        if self.begun == 0 && memchr::memchr(CANCEL, &bytes).is_none() {
            return (bytes, false);
        }
        let (mut out, mut rang) = (Vec::with_capacity(bytes.len()), false);
        for byte in bytes {
            if byte != self.bell[self.begun] {
                out.extend(self.give_up());
            }
            // The first byte occurs in a bell only once, so there is no other place to begin again.
            if byte == self.bell[self.begun] {
                self.begun += 1;
            } else {
                out.push(byte);
            }
            if self.begun == self.bell.len() {
                self.begun = 0;
                rang = true;
            }
        }
        (out, rang)
    }

    /// What was held back because it could have been the beginning of a bell.
    pub(super) fn give_up(&mut self) -> Vec<u8> {
        self.bell[..std::mem::take(&mut self.begun)].to_vec()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn secret() -> Secret {
        Secret::new([7; 16])
    }

    /// All of it in chunks of this length: the clean bytes and how often it rang.
    fn listen(bytes: &[u8], chunk: usize) -> (Vec<u8>, usize) {
        let mut doorbell = Doorbell::new(&secret());
        let (mut clean, mut rings) = (Vec::new(), 0);
        for chunk in bytes.chunks(chunk) {
            let (bytes, rang) = doorbell.listen(chunk.to_vec());
            clean.extend(bytes);
            rings += usize::from(rang);
        }
        clean.extend(doorbell.give_up());
        (clean, rings)
    }

    #[test]
    fn bells_are_heard_and_taken_out() {
        let bell = secret().bell();
        let stream = [&bell[..], b"one\x18\x1b]two", &bell, b"\x18", &bell[..9], &bell, b"\x18"].concat();
        for chunk in [1, 2, 7, 1000] {
            let (clean, rings) = listen(&stream, chunk);
            assert_eq!(clean, [b"one\x18\x1b]two\x18", &bell[..9], b"\x18"].concat(), "in chunks of {chunk}");
            assert!(rings == 3 || chunk > bell.len(), "in chunks of {chunk}");
        }
    }

    #[test]
    fn a_foreign_bell_is_only_output() {
        let other = Secret::new([8; 16]).bell();
        assert_eq!(listen(&other, 5), (other, 0));
    }

    #[test]
    fn a_secret_is_read_back() {
        assert_eq!(Secret::parse(secret().as_str()), Some(secret()));
        assert_eq!(Secret::parse("7"), None);
        assert_eq!(Secret::parse(&"g".repeat(32)), None);
    }

    proptest! {
        #[test]
        fn nothing_is_lost_without_a_bell(
            bytes in prop::collection::vec(prop_oneof![Just(CANCEL), Just(0x1b), Just(b']'), any::<u8>()], 0..100),
            chunk in 1usize..9,
        ) {
            prop_assert_eq!(listen(&bytes, chunk), (bytes, 0));
        }
    }
}
