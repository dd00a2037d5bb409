import Foundation
import Testing

@Suite("Hosts that requests name on cleartext listeners", .serialized, .timeLimit(.minutes(15)))
struct ForeignPageTests {
    @Test("A request that names two hosts, or none, is refused; the edge accepts it")
    func hosts() throws {
        let gateway = try RunningGateway()
        let script = RunningGateway.client("two_hosts.py")
        let arguments = [script, gateway.admin, gateway.plain, gateway.edge, gateway.certificateAuthority]
        let ended = try ChildProcess.run(RunningGateway.python, arguments)
        #expect(ended.status == 0, "\(ended.errors)")
        let lines = ended.output.split(separator: "\n").map(String.init)
        #expect(lines.count == 3 * 7)
        for line in lines {
            let words = line.split(separator: " ")
            let isGood = ["same", "port", "case", "host-only"].contains(words[1])
            #expect(words[2] == (words[0] == "edge" || isGood ? "404" : "403"), "\(line)")
        }
    }

    @Test("Clients of a socket file name this machine, as curl does")
    func socketFile() throws {
        let folder = try RestartFolder()
        let path = folder.folder.appendingPathComponent("a.sock").path
        let gateway = try RunningGateway(admin: "unix:\(path)")
        for (host, status) in [("localhost", 200), ("unix", 403), ("unix:9197", 403), ("attacker.example", 403)] {
            let options = ["--silent", "--max-time", "20", "--include", "--unix-socket", path, "-H", "Host: \(host)"]
            let ended = try ChildProcess.run("curl", options + ["http://localhost/v1/stats"])
            #expect(try Answer(curlOutput: ended.output).status == status, "\(host)")
        }
        withExtendedLifetime(gateway) {}
    }
}
