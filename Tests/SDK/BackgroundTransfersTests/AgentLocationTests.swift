import BackgroundTransfers
import Testing

@Suite("Where an agent is looked for")
struct AgentLocationTests {
    private static func location(
        _ address: String? = nil,
        _ variables: [String: String] = [:],
        user: String? = "me",
        there: Set<String> = []
    ) throws(BackgroundTransferError) -> AgentLocation {
        try AgentLocation(address, variables: { variables[$0] }, user: user, exists: there.contains)
    }

    private static let both = ["/r/wakegate/transfers.sock", "/run/wakegate-transfers/me/transfers.sock"]

    @Test("What is named counts, then the variable, then the user's folder, then the system's")
    func order() throws {
        let variables = ["WAKEGATE_TRANSFERS": "unix:/v.sock", "XDG_RUNTIME_DIR": "/r"]
        #expect(try Self.location("unix:/a.sock", variables).path == "/a.sock")
        #expect(try Self.location("/a.sock", variables).path == "/a.sock")
        #expect(try Self.location(nil, variables).path == "/v.sock")
        let standard = ["XDG_RUNTIME_DIR": "/r", "WAKEGATE_TRANSFERS": ""]
        #expect(try Self.location(nil, standard, there: Set(Self.both)).path == Self.both[0])
        let second = try Self.location(nil, standard, there: [Self.both[1]])
        #expect(second.path == Self.both[1] && second.others.isEmpty)
        let none = try Self.location(nil, standard)
        #expect(none.path == Self.both[0] && none.others == [Self.both[1]])
        #expect(try Self.location().path == Self.both[1])
    }

    @Test(
        "What is no path of a socket is refused",
        arguments: ["", "unix:", "http://localhost:1", "unix:/" + String(repeating: "a", count: 107)]
    )
    func refused(address: String) {
        let error = #expect(throws: BackgroundTransferError.self) { _ = try Self.location(address) }
        #expect(error?.code == .badArgument)
    }

    @Test("The longest path of a socket is taken")
    func longest() throws {
        let path = "/" + String(repeating: "a", count: AgentLocation.pathBytesMax - 1)
        #expect(try Self.location(path).path == path)
    }

    @Test("A user without a name and a folder names the socket")
    func nowhere() {
        let error = #expect(throws: BackgroundTransferError.self) { _ = try Self.location(user: nil) }
        #expect(error?.message.contains("WAKEGATE_TRANSFERS") == true)
    }
}
