import BackgroundTransfers
import Foundation
import Testing
import WakeGateTestKit

@Suite("A session and its agent", .serialized, .timeLimit(.minutes(15)))
struct BackgroundSessionTests {
    private static let one = ListedTransfer.id(1)
    private let agent: ScriptedAgent
    private let session: BackgroundSession

    init() async throws {
        self.agent = try await ScriptedAgent()
        self.session = try self.agent.session()
    }

    @Test("The agent receives the session's settings once, before the first request, and only those that have a value")
    func settings() async throws {
        var configuration = BackgroundSessionConfiguration()
        configuration.wakes(device: "abcd", topic: "com.example.app")
        configuration.isDiscretionary = true
        configuration.allowsMetered = false
        configuration.allowsConstrained = false
        configuration.continuesAfterForceQuit = true
        configuration.requestTimeout = .milliseconds(1500)
        configuration.resourceTimeout = .seconds(3600)
        configuration.connectionsPerHost = 2
        configuration.acceptsEarlyAnswers = true
        let session = try self.agent.session(configuration)
        try await self.agent.answer("GET", "/transfers", 200, ListedTransfer.list(), lasts: true)
        #expect(try await session.transfers().isEmpty)
        #expect(try await session.finishedDownloads().isEmpty)
        let told = try await self.agent.request("/v1/sessions/s")
        #expect(told.method == "PUT")
        #expect(
            told.body
                == #"{"device":"abcd","topic":"com.example.app","discretionary":true,"sendsLaunchEvents":true,"#
                + #""allowsMetered":false,"allowsConstrained":false,"continuesAfterForceQuit":true,"#
                + #""acceptsEarlyAnswers":true,"requestTimeout":1.500,"#
                + #""resourceTimeout":3600,"connectionsPerHost":2}"#
        )
        #expect(try await self.agent.request("/transfers").path == "/v1/sessions/s/transfers?limit=1000")
        #expect(try await self.agent.request("/transfers").path == "/v1/sessions/s/transfers?limit=1000&state=finished")
        _ = try await self.agent.session().transfers()
        #expect(try await self.agent.request("/v1/sessions/s").body == "{}")
    }

    @Test("A session that the agent has forgotten is created again")
    func forgotten() async throws {
        try await self.agent.answer("GET", "/transfers", 404, #"{"reason":"UnknownSession","message":"Make it."}"#)
        try await self.agent.answer("GET", "/transfers", 200, ListedTransfer.list())
        #expect(try await self.session.transfers().isEmpty)
        try await self.agent.request("/v1/sessions/s")
        try await self.agent.request("/v1/sessions/s")
    }

    @Test("A transfer is added with all its settings, and its description has no header value and no password")
    func add() async throws {
        var request = BackgroundTransferRequest.download("https://me:pa55@h/a?key=k3y")
        request.method = "POST"
        request.headers = ["authorization": "s3cret", "accept": "\"x\"\n"]
        request.earliestBegin = Date(timeIntervalSince1970: 2)
        request.sha256 = "ab"
        request.bytesMax = 9
        request.requestTimeout = .milliseconds(1500)
        request.resourceTimeout = .seconds(60)
        request.note = "where"
        try await self.agent.answer("POST", "/transfers", 201, #"{"transfer":"\#(Self.one)"}"#)
        #expect(try await self.session.add(request).description == Self.one)
        #expect(
            try await self.agent.request("/transfers").body
                == #"{"kind":"download","url":"https://me:pa55@h/a?key=k3y","method":"POST","#
                + #""headers":{"accept":"\"x\"\n","authorization":"s3cret"},"earliestBegin":2000,"#
                + #""sha256":"ab","bytesMax":9,"requestTimeout":1.500,"resourceTimeout":60,"note":"where"}"#
        )
        var dumped = ""
        dump(request, to: &dumped)
        for text in ["\(request)", String(reflecting: request), dumped] {
            #expect(text.contains("https://h/a") && text.contains("authorization"), "\(text)")
            #expect(!["s3cret", "pa55", "k3y"].contains(where: text.contains), "\(text)")
        }
        try await self.agent.answer("POST", "/transfers", 201, #"{"transfer":"\#(Self.one)"}"#)
        try await self.session.add(.upload("up", to: "http://h/u"))
        let path = FileManager.default.currentDirectoryPath
        #expect(
            try await self.agent.request("/transfers").body
                == #"{"kind":"upload","url":"http://h/u","file":"\#(path)/up"}"#
        )
        try await self.agent.answer("POST", "/transfers", 201, #"{"transfer":"\#(Self.one)"}"#)
        let url = try #require(URL(string: "https://h/film.mp4?part=1"))
        #expect(try await self.session.downloadTask(with: url).description == Self.one)
        #expect(
            try await self.agent.request("/transfers").body == #"{"kind":"download","url":"https://h/film.mp4?part=1"}"#
        )
    }

    @Test(
        "A time-out is sent from 0 to 366 days",
        arguments: [
            (.milliseconds(-500), "0"), (.milliseconds(1), "0.001"), (.seconds(Int64.max), "31622400"),
            (.seconds(Int64.min), "0"),
        ] as [(Duration, String)]
    )
    func timeOuts(duration: Duration, text: String) async throws {
        var request = BackgroundTransferRequest.download("http://h/a")
        request.resourceTimeout = duration
        try await self.agent.answer("POST", "/transfers", 201, #"{"transfer":"\#(Self.one)"}"#)
        try await self.session.add(request)
        #expect(try await self.agent.request("/transfers").body.hasSuffix(#","resourceTimeout":\#(text)}"#))
    }

    @Test(
        "A list is read to its end, after a whole page or from the position that the agent gives",
        arguments: [(1000, "", ""), (1, #","next":"\#(Self.one)""#, #","next":null"#)]
    )
    func pages(count: Int, next: String, end: String) async throws {
        let first = (1...count).map { ListedTransfer.json($0, "waiting") }.joined(separator: ",")
        try await self.agent.answer("GET", "/transfers", 200, #"{"transfers":[\#(first)]\#(next)}"#)
        let last = ListedTransfer.json(count + 1, "waiting")
        try await self.agent.answer("GET", "/transfers", 200, #"{"transfers":[\#(last)]\#(end)}"#)
        #expect(try await self.session.transfers().count == count + 1)
        try await self.agent.request("/transfers")
        let second = try await self.agent.request("/transfers").path
        #expect(second == "/v1/sessions/s/transfers?limit=1000&after=\(ListedTransfer.id(count))")
    }

    @Test(
        "Each refusal has its own code, and the agent's message",
        arguments: [
            (409, "TooManySessions", .tooManySessions), (409, "TooManyTransfers", .tooManyTransfers),
            (507, "NoSpace", .noSpace), (409, "NotFinished", .notFinished), (409, "AlreadyTaken", .alreadyTaken),
            (409, "FileExists", .fileExists), (400, "BadPath", .badPath), (400, "BadTransfer", .badTransfer),
            (400, "BadSession", .badSession), (404, "UnknownTransfer", .unknownTransfer),
            (403, "Forbidden", .notPermitted), (418, "Teapot", .refused),
        ] as [(Int, String, BackgroundTransferError.Code)]
    )
    func refusals(status: Int, reason: String, code: BackgroundTransferError.Code) async throws {
        try await self.agent.answer("POST", "/take", status, #"{"reason":"\#(reason)","message":"Do this."}"#)
        let id = try #require(BackgroundTransferID(Self.one))
        let error = await #expect(throws: BackgroundTransferError.self) {
            _ = try await self.session.take(id, to: "/x")
        }
        #expect(error?.code == code)
        #expect(error?.message.contains("Do this.") == true)
        #expect(try await self.agent.request("/take").body == #"{"to":"/x"}"#)
    }

    @Test("A stream of events that is refused says why, with all the agent's words")
    func refusedEvents() async throws {
        let words = String(repeating: "Do this. ", count: 4000)
        try await self.agent.answer("GET", "/events", 429, #"{"reason":"TooManyStreams","message":"\#(words)"}"#)
        let error = await #expect(throws: BackgroundTransferError.self) {
            var events = self.session.events.makeAsyncIterator()
            _ = try await events.next()
        }
        #expect(error?.code == .refused)
        #expect(error?.message == "the agent answered 429 TooManyStreams: \(words)")
    }

    @Test("An idempotent request waits for an agent that restarts")
    func gracePeriod() async throws {
        let session = self.session
        try await self.agent.answer("GET", "/transfers", 200, ListedTransfer.list(), lasts: true)
        #expect(try await session.transfers().isEmpty)
        try await self.agent.make("leave")
        async let listed = session.transfers()
        try await self.agent.make("return")
        #expect(try await listed.isEmpty)
        // A transfer that the agent may already have is not added again.
        try await self.agent.answer("POST", "/transfers", 0)
        let error = await #expect(throws: BackgroundTransferError.self) {
            _ = try await session.add(.download("http://h/1"))
        }
        #expect(error?.code == .interrupted)
        #expect(error?.message.contains("list the session's transfers") == true)
    }

    @Test("Events arrive, also across a restart of the agent, and each change in a list is reported once")
    func events() async throws {
        let running = ListedTransfer.json(1, "running", bytes: 5, #""total":10"#)
        try await self.agent.answer(
            "GET",
            "/transfers",
            200,
            ListedTransfer.list(running, ListedTransfer.json(2, "waiting"))
        )
        var events = self.session.events.makeAsyncIterator()
        let first = try ListedTransfer.read(running).progress
        #expect(try await events.next() == .progress(first))
        #expect(first.fraction == 0.5)
        try await self.agent.send("progress", #"{"transfer":"\#(Self.one)","bytes":7,"total":10}"#)
        let advanced = ListedTransfer.json(1, "running", bytes: 7, #""total":10"#)
        #expect(try await events.next() == .progress(ListedTransfer.read(advanced).progress))
        // The next answers are those of the restarted agent.
        try await self.agent.make("leave")
        let failure = #""error":{"reason":"HTTPStatus","message":"404"},"status":404"#
        let ended = [ListedTransfer.json(1, "finished", bytes: 10), ListedTransfer.json(2, "failed", failure)]
        try await self.agent.answer("GET", "/transfers", 200, ListedTransfer.list(ended[0], ended[1]))
        try await self.agent.make("return")
        let (finished, failed) = try (ListedTransfer.read(ended[0]), ListedTransfer.read(ended[1]))
        #expect(try await events.next() == .finished(finished))
        #expect(finished.id.description == Self.one && finished.createdAt == Date(timeIntervalSince1970: 1))
        #expect(try await events.next() == .failed(failed))
        #expect(failed.failure?.reason == .httpStatus && failed.httpStatus == 404)
        #expect(try await events.next() == .idle)
    }

    @Test("A download is added, awaited and taken; all waiting callers share one stream")
    func download() async throws {
        let session = self.session
        try await self.agent.answer("GET", "/transfers", 200, ListedTransfer.list(), lasts: true)
        try await self.agent.answer("POST", "/transfers", 201, #"{"transfer":"\#(Self.one)"}"#)
        let path = "/transfers/\(Self.one)"
        try await self.agent.answer("GET", path, 200, ListedTransfer.json(1, "running"), lasts: true)
        try await self.agent.answer("POST", "/take", 200, ListedTransfer.json(1, "finished", #""taken":true"#))
        async let downloaded = session.download(from: "http://h/1", to: "/d/1", replacing: true)
        try await self.agent.request("/events")
        try await self.agent.send("finished", ListedTransfer.json(1, "finished"))
        #expect(try await downloaded.isTaken)
        #expect(try await self.agent.request("/take").body == #"{"to":"/d/1","replace":true}"#)
        let id = try #require(BackgroundTransferID(Self.one))
        let failed = ListedTransfer.json(1, "failed", #""error":{"reason":"BadChecksum","message":"no"}"#)
        let waiting = (0..<2).map { _ in
            Task { () throws(BackgroundTransferError) in try await session.wait(for: id) }
        }
        try await self.agent.request("/events")
        // Each of the three waiting calls sends one request before it listens, and one after.
        for _ in 0..<6 { try await self.agent.request(Self.one) }
        try await self.agent.send("failed", failed)
        for each in waiting {
            let error = await #expect(throws: BackgroundTransferError.self) { _ = try await each.value }
            #expect(error?.code == .transferFailed && error?.transfer?.failure?.reason == .badChecksum)
        }
    }

    @Test("A download of an earlier run is resumed once, although the agent lists its URL without the password")
    func goesOn() async throws {
        let earlier = ListedTransfer.json(1, "finished", #""note":"/d/1""#)
        try await self.agent.answer("GET", "/transfers", 200, ListedTransfer.list(earlier), lasts: true)
        try await self.agent.answer("GET", "/transfers/\(Self.one)", 200, earlier, lasts: true)
        let taken = ListedTransfer.json(1, "finished", #""taken":true"#)
        try await self.agent.answer("POST", "/take", 200, taken, lasts: true)
        #expect(try await self.session.download(from: "http://me:pa55@h/1", to: "/d/1").isTaken)
        try await self.agent.answer("POST", "/transfers", 507, #"{"reason":"NoSpace","message":"Make room."}"#)
        let error = await #expect(throws: BackgroundTransferError.self) {
            _ = try await self.session.download(from: "http://h/1", to: "/d/1")
        }
        #expect(error?.code == .noSpace)
    }

    @Test("A download of an earlier run that was taken or removed in this run is added again")
    func goesOnNoLonger() async throws {
        let first = ListedTransfer.json(1, "finished", #""note":"/d/1""#)
        let second = ListedTransfer.json(2, "finished", #""note":"/d/2""#)
        let listed = ListedTransfer.list(first, second)
        try await self.agent.answer("GET", "/transfers", 200, listed, lasts: true)
        let taken = ListedTransfer.json(1, "finished", #""note":"/d/1","taken":true"#)
        try await self.agent.answer("GET", "/transfers/\(Self.one)", 200, taken, lasts: true)
        let unknown = #"{"reason":"UnknownTransfer","message":"List them."}"#
        try await self.agent.answer("GET", "/transfers/\(ListedTransfer.id(2))", 404, unknown, lasts: true)
        let full = #"{"reason":"NoSpace","message":"Make room."}"#
        try await self.agent.answer("POST", "/transfers", 507, full, lasts: true)
        for number in 1...2 {
            let error = await #expect(throws: BackgroundTransferError.self) {
                _ = try await self.session.download(from: "http://h/\(number)", to: "/d/\(number)", replacing: true)
            }
            #expect(error?.code == .noSpace)
        }
    }

    @Test("An agent that dies while it moves a file has moved it once")
    func takenBefore() async throws {
        let id = try #require(BackgroundTransferID(Self.one))
        try await self.agent.answer("POST", "/take", 0)
        let taken = ListedTransfer.json(1, "finished", #""taken":true"#)
        try await self.agent.answer("GET", "/transfers/\(Self.one)", 200, taken)
        #expect(try await self.session.take(id, to: "/d/1").isTaken)
        try await self.agent.request("/take")
        try await self.agent.answer("POST", "/take", 0)
        try await self.agent.answer("GET", "/transfers/\(Self.one)", 200, ListedTransfer.json(1, "finished"))
        try await self.agent.answer("POST", "/take", 200, taken)
        #expect(try await self.session.take(id, to: "/d/1").isTaken)
    }

    @Test("A task that waits may be cancelled, and the transfer is not")
    func cancelled() async throws {
        let session = self.session
        try await self.agent.answer("GET", "/transfers", 200, ListedTransfer.list(), lasts: true)
        try await self.agent.answer("GET", Self.one, 200, ListedTransfer.json(1, "running"), lasts: true)
        let id = try #require(BackgroundTransferID(Self.one))
        let waiting = Task { () throws(BackgroundTransferError) in try await session.wait(for: id) }
        try await self.agent.request("/events")
        waiting.cancel()
        let error = await #expect(throws: BackgroundTransferError.self) { _ = try await waiting.value }
        #expect(error?.code == .cancelled)
        try await session.cancel(id, keep: true)
        try await session.cancel(id)
        #expect(try await self.agent.request(Self.one).method == "GET")
        try await session.remove()
        let removed = try await self.agent.request("/v1/sessions/s")
        #expect(removed.method == "PUT")
        #expect(try await self.agent.request("/v1/sessions/s").method == "DELETE")
    }
}

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

    @Test("The address is the given one, then the variable's, then the user's folder, then the system's")
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
        let longest = "/" + String(repeating: "a", count: AgentLocation.pathBytesMax - 1)
        #expect(try Self.location(longest).path == longest)
    }

    @Test(
        "An address that is not a path of a socket is refused",
        arguments: ["", "unix:", "http://localhost:1", "unix:/" + String(repeating: "a", count: 107)]
    )
    func refused(address: String) {
        let error = #expect(throws: BackgroundTransferError.self) { _ = try Self.location(address) }
        #expect(error?.code == .badArgument)
    }

    @Test("A user without a name and a folder names the socket")
    func nowhere() {
        let error = #expect(throws: BackgroundTransferError.self) { _ = try Self.location(user: nil) }
        #expect(error?.message.contains("WAKEGATE_TRANSFERS") == true)
    }

    @Test("Where no agent listens the error names the socket and how to start one")
    func noAgent() async throws {
        let session = try BackgroundSession("s", agent: "unix:/nonexistent/agent.sock")
        let error = await #expect(throws: BackgroundTransferError.self) { _ = try await session.transfers() }
        #expect(error?.code == .noAgent)
        #expect(error?.message.contains("/nonexistent/agent.sock") == true)
        #expect(error?.message.contains("wakegate transfers --listen") == true)
        #expect(throws: BackgroundTransferError.self) { _ = try BackgroundSession("no slash/") }
    }
}

@Suite("Events for a reader of a session")
struct SessionFollowerTests {
    private static func transfer(_ number: Int, _ state: String, bytes: Int = 0, taken: Bool = false) throws
        -> BackgroundTransfer
    {
        try ListedTransfer.read(ListedTransfer.json(number, state, bytes: bytes, #""taken":\#(taken)"#))
    }

    @Test("The first list reports running, finished and failed transfers, and that the session is idle")
    func first() throws {
        var follower = SessionFollower()
        let listed = try [
            Self.transfer(1, "running", bytes: 7), Self.transfer(2, "waiting"), Self.transfer(3, "finished"),
            Self.transfer(4, "finished", taken: true), Self.transfer(5, "failed"), Self.transfer(6, "cancelled"),
        ]
        #expect(
            follower.listed(listed) == [.progress(listed[0].progress), .finished(listed[2]), .failed(listed[4])]
        )
        var idle = SessionFollower()
        #expect(idle.listed([listed[2]]) == [.finished(listed[2]), .idle])
        var empty = SessionFollower()
        #expect(empty.listed([]).isEmpty)
    }

    @Test("A reader of all ends also receives taken and cancelled transfers")
    func all() throws {
        var follower = SessionFollower(tellsAll: true)
        let listed = try [Self.transfer(4, "finished", taken: true), Self.transfer(6, "cancelled")]
        #expect(follower.listed(listed) == [.finished(listed[0]), .cancelled(listed[1]), .idle])
    }

    @Test("An end is reported once, by an event or by a list")
    func once() throws {
        var follower = SessionFollower()
        let (one, two) = try (Self.transfer(1, "finished"), Self.transfer(2, "cancelled", bytes: 3))
        #expect(follower.listed(try [Self.transfer(1, "running"), Self.transfer(2, "running")]).count == 2)
        #expect(follower.received(.finished(one)) == true)
        #expect(follower.received(.finished(one)) == false)
        #expect(follower.received(.progress(one.progress)) == false)
        #expect(follower.listed([one, two]) == [.cancelled(two), .idle])
        #expect(follower.listed([one, two]).isEmpty)
        #expect(follower.received(.cancelled(two)) == false)
    }

    @Test("The end of all transfers is reported once each time")
    func idle() throws {
        var follower = SessionFollower()
        let (one, two) = try (Self.transfer(1, "finished"), Self.transfer(2, "finished"))
        #expect(follower.listed([one]) == [.finished(one), .idle])
        #expect(follower.received(.idle) == false)
        #expect(follower.received(.progress(two.progress)) == true)
        #expect(follower.received(.finished(two)) == true)
        #expect(follower.received(.idle) == true)
        #expect(follower.received(.idle) == false)
        #expect(follower.listed([one, two]).isEmpty)
    }
}
