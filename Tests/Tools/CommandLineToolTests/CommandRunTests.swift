import CommandLineTool
import Testing
import WakeWorker
import Wire

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
                "WAKEGATE_KIND": "push", "WAKEGATE_WAKE": "w1", "WAKEGATE_DEVICE": "ab", "WAKEGATE_TOPIC": "t",
                "WAKEGATE_ATTEMPT": "2",
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

    @Test(
        "A command finds what its task is",
        arguments: [
            (
                #""kind":"continued","task":"a.b","title":"Export","subtitle":"of all""#,
                ["TASK": "a.b", "TITLE": "Export", "SUBTITLE": "of all", "KIND": "continued"]
            ),
            (#""kind":"processing","task":"a.b""#, ["TASK": "a.b", "KIND": "processing"]),
            (
                #""kind":"urlSession","session":"photos","count":3"#,
                ["SESSION": "photos", "COUNT": "3", "KIND": "urlSession"]
            ),
        ]
    )
    func task(members: String, variables: [String: String]) throws {
        let data = #"{"wake":"w1","device":"ab","topic":"t","attempt":2,"deadline":99,\#(members)}"#
        guard case .task(let message)? = WakeEvent(Array(data.utf8)) else {
            Issue.record("no task")
            return
        }
        let work = CommandWork(message)
        var expected = [
            "WAKEGATE_WAKE": "w1", "WAKEGATE_DEVICE": "ab", "WAKEGATE_TOPIC": "t", "WAKEGATE_ATTEMPT": "2",
            "WAKEGATE_DEADLINE": "99",
        ]
        for (name, value) in variables { expected["WAKEGATE_\(name)"] = value }
        #expect(work.variables == expected)
        #expect(work.input.isEmpty)
        #expect(work.tellsProgress == (variables["KIND"] == "continued"))
        #expect(!work.isFailure(exitStatus: 0))
        for status in [1, 3, nil] as [Int32?] { #expect(work.isFailure(exitStatus: status)) }
    }

    @Test("For a push exit status 3 is no failure")
    func push() throws {
        let message = try #require(WakeMessage(Array(#"{"wake":"w","device":"a","topic":"t","deadline":9}"#.utf8)))
        let work = CommandWork(WakeNotification(message))
        #expect(!work.tellsProgress)
        for status in [0, 3] as [Int32?] { #expect(!work.isFailure(exitStatus: status)) }
        for status in [1, nil] as [Int32?] { #expect(work.isFailure(exitStatus: status)) }
    }

    @Test("The reason of an expiration has the gateway's word for it", arguments: ExpirationReason.allCases)
    func expiration(reason: ExpirationReason) {
        #expect(WorkerLog.text(reason).hasPrefix("\(reason.rawValue), "))
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
