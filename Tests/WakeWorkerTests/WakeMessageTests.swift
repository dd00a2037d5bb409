import Testing
import WakeWorker

@Suite("Wakes as the SDK reads them")
struct WakeMessageTests {
    @Test("Every member is read, and the payload stays byte for byte")
    func whole() throws {
        let payload = "{ \"n\" : 1.000e999, \"s\":\"\\ud800 } ] \\\" , \" , \"a\":[1,{}] }"
        let text = """
            {"wake":"w\\u0031","kind":"push","device":"ab","topic":"t","apnsID":"i","priority":10,"attempt":2,
            "coalesced":3,"receivedAt":5,"firstReceivedAt":4,"deadline":99,"timeLeft":30,"collapseID":"c",
            "payload":\(payload)}
            """
        let wake = try #require(WakeMessage(Array(text.utf8)))
        #expect(String(decoding: wake.payload, as: UTF8.self) == payload)
        #expect([wake.wake, wake.device, wake.topic, wake.apnsID, wake.collapseID] == ["w1", "ab", "t", "i", "c"])
        #expect([wake.priority, wake.attempt, wake.coalesced] == [10, 2, 3])
        #expect([wake.receivedAt, wake.firstReceivedAt, wake.deadline, wake.timeLeft] == [5, 4, 99, 30])
    }

    @Test("A wake without a push has no payload, and what older gateways leave out is made up for")
    func empty() throws {
        let text = #"{"wake":"w","device":"ab","topic":"t","apnsID":null,"deadline":99,"payload":null}"#
        let wake = try #require(WakeMessage(Array(text.utf8)))
        #expect(wake.payload.isEmpty && wake.apnsID == nil && wake.timeLeft == nil && wake.attempt == 1)
    }

    @Test("The traces of a wake are read; most wakes have none")
    func traces() throws {
        let start = #"{"wake":"w","device":"ab","topic":"t","deadline":99,"#
        let text = start + #""traceparent":"p","tracestate":"a=\"1\"","traceLinks":["x","y"],"payload":null}"#
        let wake = WakeNotification(try #require(WakeMessage(Array(text.utf8))))
        #expect(wake.traceparent == "p" && wake.tracestate == "a=\"1\"" && wake.traceLinks == ["x", "y"])
        let plain = WakeNotification(try #require(WakeMessage(Array((start + #""payload":null}"#).utf8))))
        #expect(plain.traceparent == nil && plain.tracestate == nil && plain.traceLinks.isEmpty)
    }

    @Test(
        "Text that is no wake is refused",
        arguments: [
            "", "[]", "{", "{\"wake\"", "{\"wake\":", "{\"wake\":\"a", "{\"wake\":\"a\"}", "{\"wake\":\"a\\",
            "{\"a\":[1}", "{,}", "{\"wake\":7,\"device\":\"b\",\"topic\":\"t\",\"deadline\":1}",
        ]
    )
    func refused(text: String) {
        #expect(WakeMessage(Array(text.utf8)) == nil)
        #expect(WakeMessage.expiredWake(Array("[]".utf8)) == nil)
    }
}
