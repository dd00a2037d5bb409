import Testing
import WakeFormat

@Suite("Events of a worker's stream as a worker reads them")
struct StreamEventTests {
    @Test("An event that a wake has expired names it")
    func expired() {
        let data = Array(#"{"wake":"w"}"#.utf8)
        #expect(StreamEvent(name: "expired", data: data) == .expired(wake: "w"))
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
