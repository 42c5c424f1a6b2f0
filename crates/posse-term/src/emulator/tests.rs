use super::*;

fn fed(size: (u16, u16), input: &str) -> Emulator {
    let mut emulator = Emulator::new(Size::clamped(size.0, size.1), HistoryLimit::default());
    emulator.feed(input.as_bytes());
    emulator
}

#[test]
fn smoke() {
    let e = fed((5, 20), "hello\r\nworld");
    assert_eq!(e.screen().text(), "hello\nworld\n");
}
