import Foundation
import Glibc
import Testing

@Suite("Workers of the SDK", .serialized, .timeLimit(.minutes(15)))
struct WorkerSDKTests {
    @Test("Results are the handlers' return values, and a thrown error is failed", arguments: ["handler", "delegate"])
    func results(form: String) throws {
        let gateway = try RunningGateway()
        let worker = try SDKWorker.subscribed(to: gateway, ["--form", form])
        for (number, result) in ["newData", "noData", "failed"].enumerated() {
            try gateway.instruct(number, #""do":"answer","result":"\#(result)""#)
            #expect(try worker.wait(for: "delivered").text("result") == result)
        }
        try gateway.instruct(3, #""do":"fail""#)
        #expect(try worker.wait(for: "delivered").text("result") == "failed")
        let results = try gateway.stats().part("wakes", "results")
        #expect(results == #"{"expired":0,"failed":2,"lost":0,"newData":1,"noData":1}"#)
        #expect(try worker.stop() == 0)
        #expect(try gateway.workerCount() == 0)
    }

    @Test("The compiler reports a typo in a handler, and accepts former names with a deprecation warning")
    func compiled() throws {
        let folder = try RestartFolder()
        let file = folder.folder.appendingPathComponent("worker.swift").path
        let program = """
            import WakeWorker
            func push(_ worker: WakeWorker) async throws {
                try await worker.run { notification in notification.deviceTokn.isEmpty ? .newData : .noData }
                try await worker.run { _ in
                    return .newdata
                }
            }
            """
        try Data(program.utf8).write(to: URL(fileURLWithPath: file))
        let faulty = try self.compile(file)
        let faults = faulty.errors.matches(of: #/worker\.swift:([0-9]+):[0-9]+: error: (.*)/#).map { "\($0.1) \($0.2)" }
        #expect(
            faults == [
                "3 value of type 'WakeNotification' has no member 'deviceTokn'",
                "5 type 'BackgroundFetchResult' has no member 'newdata'",
            ],
            "\(faulty)"
        )
        let former = """
            import WakeWorker
            func begin(_ worker: WakeWorker, _ app: some RemoteNotificationDelegate) async throws {
                try await worker.run(delegate: app)
                try await worker.run()
            }
            """
        try Data(former.utf8).write(to: URL(fileURLWithPath: file))
        let compiled = try self.compile(file)
        #expect(compiled.status == 0, "\(compiled)")
        for (old, new) in [("run(delegate:)", "runDelegate(_:)"), ("run()", "runTasks()")] {
            #expect(compiled.errors.contains("warning: '\(old)' is deprecated: renamed to '\(new)'"), "\(compiled)")
        }
    }

    /// Compiles a program that imports the built library.
    private func compile(_ file: String) throws -> ChildProcess.Ended {
        let products = RunningGateway.products
        let libraries = RunningGateway.root.appendingPathComponent("Sources/Libraries")
        let names = try FileManager.default.contentsOfDirectory(atPath: libraries.path).sorted()
        let maps = names.flatMap { name in
            [
                libraries.appendingPathComponent("\(name)/module.modulemap").path,
                products.appendingPathComponent("\(name).build/module.modulemap").path,
            ]
        }.filter { FileManager.default.fileExists(atPath: $0) }
        let options = maps.flatMap { ["-Xcc", "-fmodule-map-file=\($0)"] }
        let modules = ["-I", products.appendingPathComponent("Modules").path]
        return try ChildProcess.run("swiftc", ["-typecheck", "-swift-version", "6", file] + modules + options)
    }

    @Test("An untrusted or wrong gateway is an error that names the remedy")
    func refused() throws {
        let gateway = try RunningGateway()
        let untrusted = try SDKWorker("https://\(gateway.edge)", authority: nil)
        let failure = try untrusted.wait(for: "failed")
        #expect(failure.text("code") == "untrusted")
        #expect(failure.text("message")?.contains("trusting(certificateAuthority:)") == true)
        #expect(try untrusted.process.finish().status == 1)
        let wrong = try SDKWorker("http://\(gateway.admin)", authority: nil)
        #expect(try wrong.wait(for: "failed").text("code") == "refused")
    }
}
