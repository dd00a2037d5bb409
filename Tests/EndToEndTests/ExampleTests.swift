import Foundation
import Glibc
import Testing
import WakeGateTestKit

@Suite("Examples in other languages", .serialized, .timeLimit(.minutes(15)))
struct ExampleTests {
    private let topic = "com.example.examples"
    private let token = String(repeating: "e8", count: 32)
    static let folder = RunningGateway.root.appendingPathComponent("deploy/examples")

    /// The path where the Python examples find the library of `deploy/python`.
    static let pythonLibrary = "PYTHONPATH=\(RunningGateway.root.appendingPathComponent("deploy/python").path)"

    enum Language: String, CaseIterable {
        case python = "py"
        case node = "mjs"
        case shell = "sh"

        var interpreter: String {
            switch self {
            case .python: RunningGateway.python
            case .node: "node"
            case .shell: "bash"
            }
        }

        /// Returns the command line of an example.
        func command(_ name: String) -> [String] {
            [self.interpreter, ExampleTests.folder.appendingPathComponent("\(name).\(self.rawValue)").path]
        }
    }

    @Test("Each example is short")
    func short() throws {
        let files = try FileManager.default.contentsOfDirectory(atPath: Self.folder.path)
        let names = ["worker", "provider", "transfers", "progress"]
        let all = Language.allCases.flatMap { language in names.map { "\($0).\(language.rawValue)" } }
        #expect(Set(files) == Set(all + ["refresh.py", "refresh.sh", "processing.py", "processing.sh"]))
        for file in files {
            let text = try String(contentsOf: Self.folder.appendingPathComponent(file), encoding: .utf8)
            #expect(text.split(separator: "\n", omittingEmptySubsequences: false).count <= 60, "\(file)")
            #expect(text.split(separator: "\n").allSatisfy { $0.count <= 120 }, "\(file)")
        }
    }

    @Test(
        "A worker handles wakes, survives a restart of the gateway, and ends properly",
        arguments: Language.allCases
    )
    func worker(language: Language) throws {
        let folder = try RestartFolder()
        let first = try folder.start()
        let worker = try self.start("worker", language, first)
        try self.wakesArrive(first, worker)
        try first.process.end(SIGKILL)
        let next = try folder.start(edge: first.edge)
        try self.wakesArrive(next, worker)
        #expect(try worker.end().status == 0)
        #expect(try next.results("lost") == 0)
    }

    @Test("The Python worker pauses if the gateway asks for it, and splits a stream at line feeds alone")
    func pythonLines() throws {
        let script = """
            import asyncio, contextlib, json, sys
            names = {}
            exec(open(sys.argv[1]).read().split("\\nasync def main")[0], names)
            class Stream:
                headers = {"retry-after": "7"}
                def raise_for_status(self): return self
                async def aiter_text(self):
                    for wake in ["1", "2"]:
                        data = json.dumps({"wake": wake, "text": "a\\u2028b\\u2029c\\x85d"}, ensure_ascii=False)
                        text = f": keep-alive\\n\\nevent: wake\\nid: {wake}\\ndata: {data}\\n\\n"
                        for start in range(0, len(text), 7): yield text[start:start + 7]
                async def aiter_lines(self):
                    for line in "".join([piece async for piece in self.aiter_text()]).splitlines(): yield line
            class Client:
                @contextlib.asynccontextmanager
                async def stream(self, *_, **__): yield Stream()
            async def answer(client, wake): print(wake["wake"], ascii(wake["text"]))
            names["answer"] = answer
            async def pause(seconds): print("pause", seconds)
            async def main():
                asyncio.sleep = pause
                await names["listen"](Client(), "t")
                await asyncio.gather(*names["running"].values())
            asyncio.run(main())
            """
        let path = Self.folder.appendingPathComponent("worker.py").path
        let ended = try ChildProcess.run(RunningGateway.python, ["-c", script, path])
        let wakes = "1 'a\\u2028b\\u2029c\\x85d'\n2 'a\\u2028b\\u2029c\\x85d'\n"
        #expect(ended.output == "pause 7.0\n\(wakes)", "\(ended.errors)")
    }

    @Test("A worker shows its token, and reports that its handler has failed", arguments: Language.allCases)
    func failure(language: Language) throws {
        let gateway = try ServedGateway(["--set", "policy.maxAttempts=1", "--set", "registration=open"])
        let token = try gateway.issue("--role", "worker", "--topic", self.topic).token
        let changed = gateway.folder.appendingPathComponent("worker.\(language.rawValue)")
        var text = try String(
            contentsOf: Self.folder.appendingPathComponent("worker.\(language.rawValue)"),
            encoding: .utf8
        )
        switch language {
        case .python: text = text.replacingOccurrences(of: #"return "newData""#, with: #"raise ValueError("no")"#)
        case .node: text = text.replacingOccurrences(of: #"return "newData""#, with: #"throw new Error("no")"#)
        case .shell: text = text.replacingOccurrences(of: "handle() { cat; }", with: "handle() { false; }")
        }
        try text.write(to: changed, atomically: true, encoding: .utf8)
        let command = ["WAKEGATE_TOKEN=\(token)", language.interpreter, changed.path, self.topic]
        let worker = try ChildProcess("env", gateway.exampleEnvironment + command)
        try gateway.eventually("a worker: \(worker.errors)") { try gateway.workerCount() == 1 }
        #expect(try gateway.push(self.token, topic: self.topic).status == 200)
        try gateway.eventually("a failure: \(worker.errors)") { try gateway.results("failed") == 1 }
    }

    @Test("A provider shows its key, and prints the answers", arguments: Language.allCases)
    func provider(language: Language) throws {
        let keys = try RestartFolder()
        try keys.putCertificates()
        let key = keys.state.appendingPathComponent("provider.p8").path
        let folder = keys.path("public")
        let add = ["key", "add", key, "--team", "DEF123GHIJ", "--key-id", "ABC123DEFG", "--topic", self.topic]
        #expect(try ChildProcess.wakegate(add + ["--keys", folder]).status == 0)
        let gateway = try RunningGateway(["--set", "providerKeys=\(folder)"])
        let proof = ["WAKEGATE_PROVIDER_KEY=\(key)", "WAKEGATE_KEY_ID=ABC123DEFG", "WAKEGATE_TEAM=DEF123GHIJ"]
        let line = language.command("provider") + [self.topic, self.token, "zz"]
        let ended = try ChildProcess.run("env", Self.environment(gateway) + proof + line)
        #expect(ended.status == 0, "\(ended.errors)")
        let lines = ended.output.split(separator: "\n").map { $0.split(separator: " ").map(String.init) }
        try #require(lines.count == 2, "\(ended.output)")
        #expect(lines[0].prefix(2) == ["200", "scheduled"])
        #expect(lines[0].last?.count == 36)
        #expect(lines[1][0] == "400")
        #expect((ended.output + ended.errors).contains("BadDeviceToken"))
        let bare = language.command("provider") + [self.topic, self.token]
        let without = try ChildProcess.run("env", Self.environment(gateway) + bare)
        #expect((without.output + without.errors).contains("MissingProviderToken"))
    }

    @Test(
        "A provider retries while a gateway drains or is away, and its push counts once",
        arguments: Language.allCases
    )
    func providerRetries(language: Language) throws {
        let folder = try RestartFolder()
        let first = try folder.start(["--set", "drainTimeout=4"])
        // A wake in flight keeps the gateway from ending at once.
        let busy = try first.curlWorker(topic: self.topic)
        #expect(try first.push(String(repeating: "b5", count: 32), topic: self.topic).status == 200)
        _ = try busy.next()
        first.process.send(SIGTERM)
        try first.eventually("the drain") { try first.admin("/readyz").status == 503 }
        let provider = try self.start("provider", language, first, [self.token])
        #expect(try first.process.finish().status == 0)
        let next = try folder.start(edge: first.edge)
        let ended = try provider.finish()
        #expect(ended.status == 0, "\(ended.errors)")
        #expect(ended.output.hasPrefix("200 scheduled"), "\(ended.output) \(ended.errors)")
        // The push in flight was lost and is pending again.
        #expect(try next.stats().integer("pushes", "accepted") == 2)
    }

    private func wakesArrive(_ gateway: RunningGateway, _ worker: ChildProcess) throws {
        try gateway.eventually("a worker: \(worker.errors)") { try gateway.workerCount() == 1 }
        let before = try gateway.results("newData")
        for number in 1...3 {
            let token = String(repeating: "\(before)\(number)", count: 32)
            #expect(try gateway.push(token, topic: self.topic).headers["wakegate-disposition"] == "launched")
            #expect(try #require(try worker.line()).contains(token))
            try gateway.eventually("a result: \(worker.errors)") { try gateway.results("newData") == before + number }
        }
    }

    private func start(
        _ name: String,
        _ language: Language,
        _ gateway: RunningGateway,
        _ arguments: [String] = []
    ) throws -> ChildProcess {
        let command = language.command(name) + [self.topic] + arguments
        return try ChildProcess("env", Self.environment(gateway) + command)
    }

    /// Returns the arguments of `env` for an example that uses a gateway. Threads of libdispatch leave signals blocked,
    /// so Python would not receive them.
    static func environment(_ gateway: RunningGateway) -> [String] {
        [
            "--default-signal=TERM", "NO_PROXY=*", "WAKEGATE_URL=https://\(gateway.edge)",
            "WAKEGATE_CA=\(gateway.certificateAuthority)",
        ]
    }
}
