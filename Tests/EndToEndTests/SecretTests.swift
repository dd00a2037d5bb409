import Foundation
import Testing

@Suite("Nothing secret is written", .serialized, .timeLimit(.minutes(15)))
struct SecretTests {
    @Test(
        "No token, key or payload is in any log, whatever goes right or wrong",
        arguments: ["debug", "info", "warning", "error"],
        ["text", "json"]
    )
    func logs(level: String, format: String) throws {
        let scene = try SecretScene(level: level, format: format)
        try scene.ask()
        try scene.work()
        try scene.blunder()
        try scene.end()
        #expect(scene.leaks() == [])
        #expect(try scene.leaksInFiles() == [])
        // Only the journal may hold it, and does: it was there to be found.
        let holders = try scene.filesWithPayload()
        #expect(!holders.isEmpty && holders.allSatisfy { $0.hasPrefix("journal") }, "\(holders)")
        let log = try #require(scene.output["gateway"])
        let events = ["ready": "info", "clientCertificate": "warning", "providerKeys": "warning"]
        let levels = ["debug", "info", "warning", "error"]
        for (event, own) in events {
            let isLogged = try #require(levels.firstIndex(of: own)) >= #require(levels.firstIndex(of: level))
            #expect(
                log.contains(format == "json" ? "\"event\":\"\(event)\"" : " \(own) \(event)") == isLogged,
                "\(event)"
            )
        }
        #expect(scene.output.values.filter { !$0.isEmpty }.count > 5)
    }
}
