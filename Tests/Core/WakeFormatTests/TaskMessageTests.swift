import Testing
import Wire

@Suite("Wakes of background tasks as a worker reads them")
struct TaskMessageTests {
    private static func read(_ data: String) -> TaskMessage? {
        guard case .task(let message)? = WakeEvent(Array(data.utf8)) else { return nil }
        return message
    }

    @Test("Every member of a task's wake is read", arguments: [WakeKind.appRefresh, .processing, .continued])
    func task(kind: WakeKind) throws {
        let text = """
            {"wake":"w","kind":"\(kind.name)","device":"ab","topic":"t","task":"com.example.a","attempt":2,
            "submittedAt":5,"deadline":99,"timeLeft":30,"title":"T","subtitle":"S"}
            """
        let wake = try #require(Self.read(text))
        #expect(wake.kind == kind && wake.work == .task("com.example.a", title: "T", subtitle: "S"))
        #expect([wake.wake, wake.device, wake.topic] == ["w", "ab", "t"])
        #expect(wake.attempt == 2 && wake.submittedAt == 5 && wake.deadline == 99 && wake.timeLeft == 30)
    }

    @Test("A session's wake has its name and how many transfers have finished")
    func session() throws {
        let start = #"{"wake":"w","kind":"urlSession","device":"ab","topic":"t","deadline":99"#
        let wake = try #require(Self.read(start + #","session":"photos","count":7,"submittedAt":5}"#))
        #expect(wake.work == .session("photos", count: 7) && wake.kind == .urlSession)
        #expect(Self.read(start + #","task":"photos"}"#) == nil)
    }

    @Test(
        "What a continued task goes on from is read, and left out where it says nothing that can be used",
        arguments: [
            (#"{"completed":3,"total":9,"title":"T","subtitle":"S"}"#, "3/9 T S"),
            (#"{"completed":0,"total":0}"#, "0/0 - -"), ("null", nil), ("{}", nil), ("7", nil),
            (#"{"completed":-1,"total":9}"#, nil), (#"{"completed":1,"total":"9"}"#, nil),
        ] as [(String, String?)]
    )
    func resumedFrom(value: String, text: String?) throws {
        let start = #"{"wake":"w","kind":"continued","device":"ab","topic":"t","task":"a","deadline":99"#
        let wake = try #require(Self.read(start + #","resumedFrom":\#(value)}"#))
        let read = wake.resumedFrom.map { "\($0.completed)/\($0.total) \($0.title ?? "-") \($0.subtitle ?? "-")" }
        #expect(read == text)
    }

    @Test("What is left out is made up for where that can be")
    func short() throws {
        let start = #"{"wake":"w","kind":"processing","device":"ab","topic":"t","task":"a","deadline":99"#
        let wake = try #require(Self.read(start + "}"))
        #expect(wake.attempt == 1 && wake.submittedAt == 0 && wake.timeLeft == nil)
        #expect(wake.work == .task("a", title: nil, subtitle: nil) && wake.timeLeft(wallClock: 90) == 9)
        #expect(wake.timeLeft(wallClock: .min) == WakeMessage.timeLeftMax)
        let far = try #require(Self.read(start + #","timeLeft":9223372036854775807}"#))
        #expect(far.timeLeft(wallClock: 90) == WakeMessage.timeLeftMax)
    }

    @Test("A task's wake that lacks what it is for, or whom, cannot be read", arguments: 0..<5)
    func missing(left: Int) {
        let members = [
            #""wake":"w""#, #""device":"ab""#, #""topic":"t""#, #""task":"a""#, #""deadline":1"#,
        ]
        let present = members.enumerated().filter { $0.offset != left }.map(\.element).joined(separator: ",")
        #expect(WakeEvent(Array(#"{"kind":"appRefresh",\#(present)}"#.utf8)) == nil)
        #expect(WakeEvent(Array(#"{"kind":"appRefresh",\#(members.joined(separator: ","))}"#.utf8)) != nil)
    }
}
