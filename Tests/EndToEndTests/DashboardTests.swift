import Foundation
import Glibc
import Testing

@Suite("The dashboard in a browser", .serialized, .timeLimit(.minutes(15)))
struct DashboardTests {
    private let topic = "com.example.dashboard"
    private let device = String(repeating: "da5b", count: 16)
    /// An unanswered wake stays in flight for as long as a test takes.
    private let longWindows = ["--set", "policy.executionWindow=3600"]

    /// The docstrings in `dashboard.py` say what each scene is about. Each begins with a fresh context of the browser.
    @Test("At work it can be read and used in every size, shows what its URL says, and its tabs share one stream")
    func atWork() throws {
        let (gateway, push) = try self.gatewayAtWork()
        let scenes = ["light", "dark", "phone", "pages", "addresses", "hints", "older", "tabs", "late"]
        try self.play(scenes, "http://\(gateway.admin)", push: push)
    }

    @Test("Without data nothing of any view is cut, it says what to do, and a page of another site gets no data")
    func withoutData() throws {
        let gateway = try RunningGateway()
        try self.play(["pages", "empty", "foreign"], "http://\(gateway.admin)", push: "")
    }

    @Test("Every control works, by pointer and keyboard")
    func controls() throws {
        let (gateway, push) = try self.gatewayAtWork()
        try self.play(["controls"], "http://\(gateway.admin)", push: push)
        let stats = try gateway.stats()
        #expect(stats.integer("wakes", "results", "expired") == 1)
        #expect(try #require(stats.integer("wakes", "launched")) >= 2)
    }

    @Test("The dashboard shows tasks with their reasons, launches, expires and cancels them, and escapes their texts")
    func tasks() throws {
        let gateway = try RunningGateway(self.longWindows + ["--set", "policy.progressWindow=3600"])
        let worker = try self.taskWorker(gateway)
        try self.play(["tasks"], "http://\(gateway.admin)", push: "")
        let stats = try gateway.stats()
        #expect(stats.integer("tasks", "results", "expired") == 1)
        #expect(stats.integer("tasks", "results", "cancelled") == 1)
        #expect(stats.integer("tasks", "cancelled") == 1)
        #expect(stats.integer("tasks", "waiting") == 0 && stats.integer("tasks", "inFlight") == 0)
        let launched = try #require(try worker.next())
        #expect(launched.name == "wake" && launched.data["task"] as? String == "com.example.clean")
        #expect(try worker.next()?.data["reason"] as? String == "operator")
        #expect(try worker.next()?.data["reason"] as? String == "cancelled")
    }

    @Test("A continued task has a card, live, from its start to its end, and is cancelled there")
    func cards() throws {
        let gateway = try RunningGateway(self.longWindows + ["--set", "policy.progressWindow=3600"])
        let registration = #"{"token":"\#(self.device)"}"#
        #expect(try gateway.edge("/v1/topics/\(self.topic)/devices", "-d", registration).status == 201)
        try gateway.curlWorker(topic: self.topic, query: "&push=0&task=com.example.*")
        let active = #"{"appState":"active"}"#
        let answer = try gateway.edge("/v1/devices/\(self.device)/conditions", "-X", "PATCH", "-d", active)
        #expect(answer.status == 200)
        try self.play(["cards"], "http://\(gateway.admin)", push: "", ["plain": "http://\(gateway.plain)"])
        let stats = try gateway.stats()
        #expect(stats.integer("tasks", "results", "cancelled") == 1)
        #expect(stats.integer("tasks", "results", "expired") == 1)
    }

    @Test("Tile, lists, devices, statistics and the command line agree on which devices are held")
    func held() throws {
        let (gateway, push) = try self.gatewayAtWork()
        func report(_ device: String, _ conditions: String) throws {
            let answer = try gateway.edge("/v1/devices/\(device)/conditions", "-X", "PATCH", "-d", conditions)
            #expect(answer.status == 200)
        }
        // A push waits for the wake in flight, on a device without a network. Two holds block the next device, and one
        // hold blocks another. Three devices get the remaining slots, and two get none.
        try report(self.device, #"{"network":false}"#)
        for number in 1...7 {
            let device = "0\(number)" + self.device.dropFirst(2)
            let registration = #"{"token":"\#(device)"}"#
            #expect(try gateway.edge("/v1/topics/\(self.topic)/devices", "-d", registration).status == 201)
            if number == 1 { try report(device, #"{"network":false,"batteryLevel":0.01,"charging":false}"#) }
            if number == 2 { try report(device, #"{"batteryLevel":0.01,"charging":false}"#) }
            #expect(try gateway.push(device, topic: self.topic).status == 200)
        }
        let stats = try gateway.stats()
        #expect(stats.integer("devices", "held", "network") == 2 && stats.integer("devices", "held", "battery") == 1)
        #expect(stats.integer("devices", "held", "worker") == 2)
        let shown = try gateway.wakegate("stats").output
        #expect(shown.contains(/\n  held +5 \(/), "\(shown)")
        for (option, value, count) in [("--state", "held", 5), ("--hold", "network", 2), ("--hold", "battery", 1)] {
            let list = try gateway.wakegate("device", "list", option, value).output
            #expect(list.split(separator: "\n").count == count + 1, "\(value): \(list)")
        }
        try self.play(["held"], "http://\(gateway.admin)", push: push)
    }

    /// On a phone holds and refusals come first, and each table row is a card that begins with its reason.
    @Test("A phone shows cards, first digits find a device, and destructive controls are red")
    func finds() throws {
        let (gateway, push) = try self.gatewayAtWork()
        for device in [
            "0123" + self.device.dropFirst(4), self.device.dropLast(2) + "00", "0badcafe01" + self.device.dropFirst(10),
        ] {
            #expect(try gateway.push(device, topic: self.topic).status == 200)
        }
        try self.play(["narrow", "finds"], "http://\(gateway.admin)", push: push)
    }

    @Test("The pending pushes of all devices in a list are dropped after their number was shown")
    func bulk() throws {
        let gateway = try RunningGateway()
        for number in 1...3 {
            let device = "\(number)" + self.device.dropFirst()
            #expect(try gateway.push(device, topic: self.topic).status == 200)
        }
        try self.play(["bulk"], "http://\(gateway.admin)", push: "")
        #expect(try gateway.stats().integer("pushes", "discarded", "cancelled") == 3)
    }

    @Test("Page and command line show the slow worker, and the pushes that were coalesced, lost or expired lately")
    func slow() throws {
        let gateway = try RunningGateway()
        let others = (1...3).map { "0\($0)" + self.device.dropFirst(2) }
        let snail = try gateway.curlWorker(topic: self.topic, name: "snail", query: "&device=\(self.device)")
        let hare = try gateway.curlWorker(topic: self.topic, name: "hare", query: "&device=\(others[0])")
        func end(_ worker: EventStream) throws -> Int {
            let wake = try #require(try worker.next()?.id)
            return try gateway.edge("/v1/wakes/\(wake)", "-d", #"{"result":"newData"}"#).status
        }
        let push = try #require(try gateway.push(self.device, topic: self.topic).headers["apns-id"])
        #expect(try gateway.push(others[0], topic: self.topic).status == 200)
        #expect(try end(hare) == 204)
        #expect(try end(snail) == 204)
        // No worker takes the wakes of these: three pushes become one, and one expires at once.
        for _ in 0..<3 { #expect(try gateway.push(others[1], topic: self.topic).status == 200) }
        let nowOrNever = try gateway.wakegate("push", others[2], "--topic", self.topic, "--expiration", "0")
        #expect(nowOrNever.output.contains("discarded"), "\(nowOrNever)")
        let shown = try gateway.wakegate("stats", "--topic", self.topic).output
        #expect(shown.contains(/\nworker .*\nsnail .*\nhare +/), "\(shown)")
        let recent = try gateway.wakegate("stats", "--topic", self.topic, "--since", "1h").output
        #expect(recent.contains(/\n  coalesced +2\n  discarded +1 \(expired 1\)\n/), "\(recent)")
        let list = try gateway.wakegate("push", "list", "--outcome", "expired,lost", "--since", "24h").output
        #expect(list.split(separator: "\n").count == 2 && list.contains(others[2]), "\(list)")
        try self.play(["durations"], "http://\(gateway.admin)", push: push)
    }

    @Test("The dashboard shows the loss with which the gateway was started")
    func loss() throws {
        let folder = try RestartFolder()
        try folder.start().end(SIGKILL)
        try FileManager.default.removeItem(atPath: folder.journal.path + "-mark")
        let gateway = try folder.start(["--accept-loss"])
        try self.play(["loss"], "http://\(gateway.admin)", push: "")
    }

    @Test("The dashboard says that the gateway is gone, keeps its data, and reconnects automatically")
    func gone() throws {
        let folder = try RestartFolder()
        let gateway = try folder.start(self.longWindows)
        let push = try self.work(gateway)
        let browser = try self.browser(["gone"], "http://\(gateway.admin)", push: push)
        #expect(try PlayedScene.faults(browser, "alive") == [])
        try gateway.process.end(SIGKILL)
        try browser.write("killed")
        #expect(try PlayedScene.faults(browser, "gone") == [])
        let next = try folder.start(self.longWindows, admin: gateway.admin)
        _ = try self.work(next)
        try browser.write("back")
        #expect(try PlayedScene.faults(browser, "gone") == [])
        #expect(try browser.finish().status == 0)
        withExtendedLifetime(next) {}
    }

    @Test("On another machine it asks for an operator's token, explains refusals, and never puts a token into a URL")
    func token() throws {
        let gateway = try ServedGateway()
        let token = try gateway.issue("--role", "operator").token
        try self.play(["token"], gateway.url(.adminAfar), push: "", ["operator": token])
    }

    @Test("The page may load only its own files, and only the admin listener serves it")
    func files() throws {
        let gateway = try RunningGateway()
        let page = try gateway.admin("/")
        #expect(page.status == 200)
        #expect(page.headers["content-type"] == "text/html; charset=utf-8")
        let policy = try #require(page.headers["content-security-policy"])
        #expect(policy.hasPrefix("default-src 'none'; script-src 'self'; style-src 'self'"))
        #expect(!policy.contains("unsafe"))
        let named = page.body.matches(of: /\/dashboard\/([a-z.]+)/).map { String($0.output.1) }
        #expect(Set(named) == ["icon.svg", "base.css", "panels.css", "views.css", "main.js"])
        for file in named { #expect(try gateway.admin("/dashboard/\(file)").status == 200, "\(file)") }
        #expect(try gateway.admin("/dashboard/other.js").reason == "BadPath")
        #expect(try gateway.admin("/", "-X", "POST").headers["allow"] == "GET, HEAD")
        #expect(try gateway.admin("/", "-H", "host: elsewhere.example").status == 403)
        #expect(try gateway.edge("/").status != 200)
        #expect(try gateway.edge("/dashboard/main.js").status != 200)
    }

    // MARK: The gateway

    /// Returns a gateway with a device that has a wake in flight and pending pushes.
    private func gatewayAtWork() throws -> (gateway: RunningGateway, push: String) {
        let gateway = try RunningGateway(self.longWindows)
        return (gateway, try self.work(gateway))
    }

    /// Starts a continued task whose texts contain markup, and leaves a processing task, a refresh task and a session
    /// pending.
    ///
    /// - Returns: the stream that has received the continued task.
    private func taskWorker(_ gateway: RunningGateway) throws -> EventStream {
        let device = "/v1/devices/\(self.device)"
        func post(_ path: String, _ body: String) throws -> Answer { try gateway.edge(path, "-d", body) }
        func report(_ state: String) throws {
            let answer = try gateway.edge("\(device)/conditions", "-X", "PATCH", "-d", #"{"appState":"\#(state)"}"#)
            #expect(answer.status == 200)
        }
        #expect(try post("/v1/topics/\(self.topic)/devices", #"{"token":"\#(self.device)"}"#).status == 201)
        #expect(try gateway.push(self.device, topic: self.topic).status == 200)
        let worker = try gateway.curlWorker(topic: self.topic, query: "&push=0&task=com.example.*")
        try report("active")
        let title = "<script>document.title = 'script'</script>"
        let export = #"{"identifier":"com.example.export","kind":"continued","title":"\#(title)"}"#
        #expect(try post("\(device)/tasks", export).status == 201)
        let wake = try #require(try worker.next()?.id)
        let subtitle = #"<img src=x onerror=\"document.title = 'image'\">"#
        let progress = #"{"completed":30,"total":120,"subtitle":"\#(subtitle)"}"#
        #expect(try post("/v1/wakes/\(wake)/progress", progress).status == 200)
        try report("background")
        let clean = #"{"identifier":"com.example.clean","kind":"processing","requiresExternalPower":true}"#
        #expect(try post("\(device)/tasks", clean).status == 201)
        let later = Int64(Date().timeIntervalSince1970 + 3000) * 1000
        let refresh = #"{"identifier":"com.example.refresh","kind":"appRefresh","earliestBegin":\#(later)}"#
        #expect(try post("\(device)/tasks", refresh).status == 201)
        #expect(try post("\(device)/sessions/uploads", #"{"finished":3}"#).status == 202)
        return worker
    }

    /// Returns the apns-id of the push whose wake is in flight.
    private func work(_ gateway: RunningGateway) throws -> String {
        try gateway.curlWorker(topic: self.topic)
        let first = try gateway.push(self.device, topic: self.topic)
        let push = try #require(first.headers["apns-id"])
        for _ in 0..<4 { #expect(try gateway.push(self.device, topic: self.topic).status == 200) }
        return push
    }

    // MARK: The browser

    /// - Parameter settings: the members that `dashboard.py` documents, in addition to those of every scene.
    private func play(_ scenes: [String], _ url: String, push: String, _ settings: [String: Any] = [:]) throws {
        let browser = try self.browser(scenes, url, push: push, settings)
        for scene in scenes {
            let faults = try PlayedScene.faults(browser, scene)
            #expect(faults.isEmpty, "\(scene): \(faults.joined(separator: "\n"))")
        }
        let ended = try browser.finish()
        #expect(ended.status == 0, "\(ended.errors)")
    }

    private func browser(_ scenes: [String], _ url: String, push: String, _ settings: [String: Any] = [:]) throws
        -> ChildProcess
    {
        // Screenshots are kept for review by people.
        let folder = RunningGateway.root.appendingPathComponent(".build/dashboard")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let own: [String: Any] = [
            "url": url, "device": self.device, "push": push, "folder": folder.path, "scenes": scenes,
        ]
        let all = try ChildProcess.json(own.merging(settings) { $1 })
        return try ChildProcess(client: "dashboard.py", [all], isInputOpen: true)
    }
}
