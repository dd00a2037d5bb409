import Foundation
import Glibc
import Testing
import WakeGateTestKit

@Suite("Commands that a worker runs for background tasks", .serialized, .timeLimit(.minutes(15)))
struct TaskWorkerTests {
    /// Starts a `wakegate worker` at a scripted gateway that takes `com.example.*` and the session `photos` but no
    /// pushes, and waits until it has subscribed.
    private func worker(
        _ peer: ScriptedGateway,
        _ options: [String] = [],
        script: String,
        under launcher: [String] = []
    ) throws -> ChildProcess {
        let worker =
            launcher + [RunningGateway.program, "worker", "--gateway", peer.url, "--ca", peer.certificateAuthority]
            + ["--topic", "t", "--task", "com.example.*", "--session", "photos", "--no-pushes"] + options
            + ["--", "bash", "-c", script]
        let process = try ChildProcess(worker[0], Array(worker.dropFirst()))
        try process.says("subscribed")
        return process
    }

    /// - `peer`: the gateway to which the worker is subscribed. It ends the stream on request.
    @discardableResult
    private func stop(_ process: ChildProcess, _ peer: ScriptedGateway? = nil) throws -> ChildProcess.Ended {
        process.send(SIGTERM)
        if let peer {
            try peer.request("/drain")
            try peer.endStream()
        }
        let ended = try process.finish()
        #expect(ended.status == 0)
        return ended
    }

    private static func task(_ kind: String, _ more: String = "") -> String {
        #""kind":"\#(kind)","task":"com.example.a","attempt":2,"timeLeft":60000\#(more)"#
    }

    @Test("The subscription has the names of the options")
    func subscription() throws {
        let peer = try ScriptedGateway()
        let worker = try self.worker(peer, ["--task", "b", "--resource", "gpu", "--name", "w"], script: "true")
        let path = try peer.path("/wakes")
        let query = Set(path.split(separator: "?")[1].split(separator: "&").map(String.init))
        #expect(
            query == ["slots=1", "name=w", "task=b", "task=com.example.*", "session=photos", "push=0", "resource=gpu"]
        )
        try self.stop(worker, peer)
    }

    @Test("Exit status 0 is success, and everything else failure")
    func exitStatus() throws {
        let peer = try ScriptedGateway()
        let worker = try self.worker(peer, script: "exit ${WAKEGATE_WAKE#w}")
        for status in [0, 1, 3, 77] {
            try peer.wake("w\(status)", Self.task("processing"))
            #expect(try peer.request("/v1/wakes/w\(status)") == #"{"success":\#(status == 0)}"#)
            if status != 0 { try worker.says("the command of wake w\(status) ended with exit status \(status)") }
        }
        try self.stop(worker, peer)
    }

    @Test("A command's environment has its own task or session, and no other's")
    func environment() throws {
        let peer = try ScriptedGateway()
        let script = #"""
            echo "$WAKEGATE_KIND|$WAKEGATE_TASK|$WAKEGATE_SESSION|$WAKEGATE_COUNT|$WAKEGATE_ATTEMPT|$WAKEGATE_DEVICE"
            echo "$WAKEGATE_TITLE|$WAKEGATE_SUBTITLE|$WAKEGATE_PROGRESS_FD|$WAKEGATE_COALESCED|\
            $TRACEPARENT$TRACESTATE|$(cat)"
            """#
        let inherited = ["TASK", "SESSION", "COUNT", "TITLE", "SUBTITLE", "PROGRESS_FD", "COALESCED"]
        let launcher = ["env", "TRACEPARENT=x", "TRACESTATE=x"] + inherited.map { "WAKEGATE_\($0)=x" }
        let worker = try self.worker(peer, script: script, under: launcher)
        try peer.wake("w1", Self.task("appRefresh"))
        #expect(try worker.line() == "w1 appRefresh|com.example.a|||2|ab")
        #expect(try worker.line() == "w1 |||||")
        try peer.request("/v1/wakes/w1")
        let more = #","title":"Export","subtitle":"all of it","traceparent":"00-a-b-01","tracestate":"a=1""#
        try peer.wake("w2", Self.task("continued", more))
        #expect(try worker.line() == "w2 continued|com.example.a|||2|ab")
        #expect(try worker.line() == "w2 Export|all of it|3||00-a-b-01a=1|")
        try peer.request("/v1/wakes/w2")
        try peer.wake("w3", #""kind":"urlSession","session":"photos","count":4,"attempt":1,"timeLeft":60000"#)
        #expect(try worker.line() == "w3 urlSession||photos|4|1|ab")
        #expect(try worker.line() == "w3 |||||")
        #expect(try peer.request("/v1/wakes/w3") == #"{"success":true}"#)
        try self.stop(worker, peer)
    }

    @Test("Progress is reported as the command prints it, the last report before the end", arguments: ["bash", "sh"])
    func progress(shell: String) throws {
        let peer = try ScriptedGateway()
        let script = """
            exec \(shell) -c 'echo "progress 10/100 Exporting" >&$WAKEGATE_PROGRESS_FD
            until [ -e more ]; do tail -n 0 /dev/null; done
            echo "progress 20/100 Exporting" >&$WAKEGATE_PROGRESS_FD
            until [ -e go ]; do tail -n 0 /dev/null; done
            printf "progress 50/100\\nprogress 99/100 nearly\\nprogress 100/100" >&$WAKEGATE_PROGRESS_FD'
            """
        let folder = try TemporaryFolder()
        let worker = try self.worker(peer, script: "cd \(folder.path); \(script)")
        let start = ContinuousClock.now
        try peer.wake("w1", Self.task("continued"))
        #expect(try peer.request("/w1/progress") == #"{"completed":10,"total":100,"subtitle":"Exporting"}"#)
        try Data().write(to: folder.url.appendingPathComponent("more"))
        #expect(try peer.request("/w1/progress") == #"{"completed":20,"total":100,"subtitle":"Exporting"}"#)
        #expect(ContinuousClock.now - start > .milliseconds(990), "progress is reported at most once a second")
        try Data().write(to: folder.url.appendingPathComponent("go"))
        // An incomplete line is ignored.
        #expect(try peer.request("/w1/progress") == #"{"completed":99,"total":100,"subtitle":"nearly"}"#)
        #expect(try peer.request("/v1/wakes/w1") == #"{"success":true}"#)
        try self.stop(worker, peer)
    }

    @Test("Invalid progress is logged once, and does no harm")
    func faults() throws {
        let peer = try ScriptedGateway()
        let script = """
            { echo hello; head -c 3000 /dev/zero; echo; echo again; echo "progress 1/1"; } >&$WAKEGATE_PROGRESS_FD
            """
        let worker = try self.worker(peer, script: script)
        try peer.wake("w1", Self.task("continued"))
        #expect(try peer.request("/w1/progress") == #"{"completed":1,"total":1}"#)
        #expect(try peer.request("/v1/wakes/w1") == #"{"success":true}"#)
        try worker.says(#"the command of wake w1 said "hello" as its progress"#)
        #expect(!worker.errors.contains("again"))
    }

    @Test("Progress moves the deadline: a command runs beyond its wake's original one")
    func deadline() throws {
        let peer = try ScriptedGateway()
        // One minute after the deadline of the wakes here, which is 1.
        try peer.answer("/progress", #"{"deadline":60001}"#)
        let script = """
            trap 'exit 9' TERM; echo "progress 1/2" >&$WAKEGATE_PROGRESS_FD
            until [ $SECONDS -ge 6 ]; do read -t 0.2 <> <(:); done
            exit 0
            """
        let worker = try self.worker(peer, script: script)
        let wake = #""kind":"continued","task":"com.example.a","timeLeft":4000"#
        try peer.wake("w1", wake)
        try peer.request("/w1/progress")
        #expect(try peer.request("/v1/wakes/w1") == #"{"success":true}"#)
        try self.stop(worker, peer)
    }

    @Test(
        "A task whose conditions end gets SIGTERM, and the log says once why it ended",
        arguments: ["conditions", "operator"]
    )
    func expiration(reason: String) throws {
        let peer = try ScriptedGateway()
        let script = "trap 'echo stopped; exit 1' TERM; echo running; while :; do read -t 1 <> <(:); done"
        let worker = try self.worker(peer, script: script)
        try peer.wake("w1", Self.task("processing"))
        #expect(try worker.line() == "w1 running")
        try peer.event("expired", #"{"wake":"w1","reason":"\#(reason)"}"#)
        #expect(try worker.line() == "w1 stopped")
        try worker.says("wake w1 has ended (\(reason)): ")
        try peer.request("/v1/wakes/w1")
        let log = try self.stop(worker, peer).errors
        #expect(log.split(separator: "\n").count { $0.contains("wake w1") } == 1, "\(log)")
    }

    @Test("A wake close to its deadline before its command starts is released to the gateway")
    func queued() throws {
        let peer = try ScriptedGateway()
        let script = "trap 'exit 0' TERM; echo running; while :; do read -t 1 <> <(:); done"
        let worker = try self.worker(peer, script: script)
        try peer.wake("w1", Self.task("processing"))
        #expect(try worker.line() == "w1 running")
        try peer.wake("w2", Self.task("processing"))
        // The worker hears of both in this order, and the second command would start when the first one ends.
        for wake in ["w2", "w1"] {
            try peer.event("expiring", #"{"wake":"\#(wake)","deadline":9999999999999,"timeLeft":30000}"#)
        }
        let bodies = try peer.requests("/v1/wakes/w1", "/v1/wakes/w2/release")
        #expect(bodies[0] == #"{"success":true}"# && bodies[1].contains("its deadline was near"), "\(bodies)")
        #expect(try !self.stop(worker, peer).output.contains("w2"))
    }

    @Test("Each change of conditions is a line, and a stream that ends is subscribed to again")
    func watch() throws {
        let peer = try ScriptedGateway()
        let token = String(repeating: "ab", count: 32)
        let line = ["device", "watch", "--gateway", peer.url, "--ca", peer.certificateAuthority, "--topic", "t"]
        let watch = try ChildProcess(wakegate: line + ["--device", token])
        let path = "/v1/topics/t/wakes?slots=1&push=0&conditions=1&name=device%20watch&device=\(token)"
        #expect(try peer.path("/wakes") == path)
        try watch.says("subscribed")
        let change = #"{"device":"\#(token)","appState":"active","batteryLevel":0.5}"#
        try peer.event("conditions", change)
        #expect(try watch.line() == change)
        try peer.endStream()
        #expect(try peer.path("/wakes") == path)
        try watch.says("subscribing again in")
        try peer.event("conditions", change)
        #expect(try watch.line() == change)
        try self.stop(watch)
    }
}
