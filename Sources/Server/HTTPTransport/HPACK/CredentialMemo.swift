internal import Wire

/// The last `authorization` that was sent as never to be indexed, which says that it is a secret: as it was coded, and
/// what that stands for. It comes with every push, and stays the same for as long as a provider's token lasts.
@safe
struct CredentialMemo: ~Copyable {
    /// A literal that is never indexed, whose name is entry 23 of the static table.
    private static let beginning: (UInt8, UInt8) = (0x1F, 23 - 15)
    private static var name: ByteView { ByteView("authorization") }
    /// A longer one is read anew each time. Real ones have two hundred bytes, or two thousand.
    private static let codedBytesMax = 4096

    /// The field as it was coded; after it the value.
    private var bytes = ByteBuffer()
    private var codedCount = 0
    private var note: UInt32 = 0

    /// How many bytes the field takes with which `bytes` begin, if it is this one; otherwise 0.
    @inline(__always)
    func codedCount(in bytes: ByteView) -> Int {
        let count = self.codedCount
        guard count > 0, bytes.count >= count else { return 0 }
        return bytes.slice(0, count: count) == self.bytes.view.slice(0, count: count) ? count : 0
    }

    @inline(__always)
    mutating func withField(_ take: (ByteView, ByteView, inout UInt32) -> Void) {
        take(Self.name, self.bytes.view.dropFirst(self.codedCount), &self.note)
    }

    /// Whether a field is a credential, by its first bytes.
    static func isCredential(_ coded: ByteView) -> Bool {
        coded.count > 1 && coded[0] == Self.beginning.0 && coded[1] == Self.beginning.1
    }

    /// Remembers a field that is never indexed, if it is a credential.
    ///
    /// - Parameters:
    ///   - coded: the whole field.
    ///   - literal: its name, and its value after it.
    ///   - note: what was noted of it.
    mutating func remember(_ coded: ByteView, literal: ByteView, note: UInt32) {
        guard coded.count <= Self.codedBytesMax, Self.isCredential(coded) else { return }
        self.bytes.removeAll()
        self.bytes.append(coded, literal.dropFirst(Self.name.count))
        self.codedCount = coded.count
        self.note = note
    }
}
