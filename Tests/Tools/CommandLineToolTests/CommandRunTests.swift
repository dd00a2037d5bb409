import CommandLineTool
import Testing
import WakeFormat
import WakeWorker

@Suite("What a command gets to know of its wake, and what its exit status says")
struct CommandRunTests {
    @Test(
        "A payload reaches the command byte for byte",
        arguments: [
            "{\"aps\":{\"content-available\":1}}",
            "{ \"n\" : 1.000e999, \"s\":\"\\ud800 } ] \\\" , \" , \"a\":[1,{}] }",
            "{}", "{\"payload\":{\"wake\":\"forged\"}}",
        ]
    )
    func payload(text: String) throws {
        let data =
            "{\"wake\":\"w\\u0031\",\"device\":\"ab\",\"topic\":\"t\",\"attempt\":2,\"coalesced\":3,\n\"deadline\":99,"
        let message = try #require(WakeMessage(Array("\(data)\"payload\":\(text)}".utf8)))
        let wake = WakeNotification(message)
        #expect(String(decoding: wake.payload, as: UTF8.self) == text)
        #expect(
            wake.commandEnvironment == [
                "WAKEGATE_WAKE": "w1", "WAKEGATE_DEVICE": "ab", "WAKEGATE_TOPIC": "t", "WAKEGATE_ATTEMPT": "2",
                "WAKEGATE_COALESCED": "3", "WAKEGATE_DEADLINE": "99",
            ]
        )
    }

    @Test("The trace of a wake is where tracing tools look for it")
    func trace() throws {
        let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
        let text = """
            {"wake":"w","device":"ab","topic":"t","deadline":99,"traceparent":"\(parent)","tracestate":"a=1",
            "payload":null}
            """
        let variables = WakeNotification(try #require(WakeMessage(Array(text.utf8)))).commandEnvironment
        #expect(variables["TRACEPARENT"] == parent)
        #expect(variables["TRACESTATE"] == "a=1")
    }

    @Test("The line about a wake that is no push's names the wake and its kind, and says that nothing is answered")
    func refusal() {
        let line = WorkerLog.refusal("w1", "appRefresh")
        #expect(line.hasPrefix("wake w1 is of the kind appRefresh, "))
        #expect(line.contains("neither it nor another of its kind is answered"))
    }

    @Test(
        "Exit statuses are results",
        arguments: [
            (0, .newData), (3, .noData), (1, .failed), (127, .failed), (nil, .failed),
        ] as [(Int32?, BackgroundFetchResult)]
    )
    func results(status: Int32?, result: BackgroundFetchResult) {
        #expect(BackgroundFetchResult(exitStatus: status) == result)
    }
}
