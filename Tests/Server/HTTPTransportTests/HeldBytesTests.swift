import HTTPTransport
import Testing

@Suite("The bytes that a connection has sent in part")
struct HeldBytesTests {
    @Test("They are told to all loops when they are told, and not before")
    func told() {
        let all = RequestBytes(bytesMax: 100)
        var held = HeldBytes()
        held.hold(30)
        #expect(held.count == 30 && all.held == 0)
        held.tell(all)
        #expect(all.held == 30)
        held.letGo(10)
        held.tell(all)
        held.tell(all)
        #expect(held.count == 20 && all.held == 20)
    }

    @Test("What is held of a block is let go of once, whatever else is held")
    func block() {
        var held = HeldBytes()
        held.hold(5)
        held.holdBlock(7)
        #expect(held.count == 12)
        held.letGoOfBlock()
        held.letGoOfBlock()
        #expect(held.count == 5)
    }

    @Test("There is room up to both bounds, of which the connection's own comes first")
    func shortage() {
        let all = RequestBytes(bytesMax: 100)
        var (held, other) = (HeldBytes(), HeldBytes())
        other.hold(60)
        other.tell(all)
        // Of the last ten all loops know nothing yet.
        held.hold(20)
        held.tell(all)
        held.hold(10)
        #expect(held.shortage(for: 10, connectionMax: 40, all: all) == .none)
        #expect(held.shortage(for: 11, connectionMax: 40, all: all) == .connection)
        #expect(held.shortage(for: 10, connectionMax: 100, all: all) == .none)
        #expect(held.shortage(for: 11, connectionMax: 100, all: all) == .server)
        #expect(other.shortage(for: 20, connectionMax: 100, all: all) == .none)
        #expect(other.shortage(for: 21, connectionMax: 100, all: all) == .server)
    }
}
