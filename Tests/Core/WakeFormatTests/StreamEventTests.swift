import Testing
import Wire

@Suite("Events of a worker's stream as a worker reads them")
struct StreamEventTests {
    @Test("An event that a wake has expired names it")
    func expired() {
        let data = Array(#"{"wake":"w"}"#.utf8)
        #expect(StreamEvent(name: "expired", data: data) == .expired(wake: "w", nil))
    }

    @Test(
        "An event that a wake has expired says why; a reason that is not known is none",
        arguments: [
            ("deadline", .deadline), ("progress", .progress), ("conditions", .conditions), ("cancelled", .cancelled),
            ("operator", .operator), ("lost", .lost), ("boredom", nil),
        ] as [(String, ExpirationReason?)]
    )
    func reasons(name: String, reason: ExpirationReason?) {
        let data = Array(#"{"wake":"w","reason":"\#(name)"}"#.utf8)
        #expect(StreamEvent(name: "expired", data: data) == .expired(wake: "w", reason))
    }

    @Test("An event of conditions names its device, and has them all")
    func conditions() throws {
        let data = #"{"device":"ab","appState":"active","batteryLevel":0.5}"#
        let read = StreamEvent(name: "conditions", data: Array(data.utf8))
        guard case .conditions("ab", let fields)? = read else {
            Issue.record("it is read as \(String(describing: read))")
            return
        }
        #expect(fields["appState"] == .string("active"))
        #expect(StreamEvent(name: "conditions", data: Array(#"{"appState":"active"}"#.utf8)) == nil)
    }

    @Test("Events of other names are left alone, whatever they carry", arguments: ["message", "", "Wake", "extended"])
    func unknown(name: String) {
        for data in ["", "{}", #"{"wake":"w"}"#] {
            #expect(StreamEvent(name: name, data: Array(data.utf8)) == .unknown)
        }
    }

    @Test("What cannot be read is no event", arguments: ["", "[]", "{}", #"{"wake":7}"#, #"{"wake":"w""#])
    func unreadable(data: String) {
        #expect(StreamEvent(name: "wake", data: Array(data.utf8)) == nil)
        #expect(StreamEvent(name: "expired", data: Array(data.utf8)) == nil)
    }
}
