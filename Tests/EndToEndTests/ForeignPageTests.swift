import Foundation
import Testing

@Suite("Hosts that requests name on cleartext listeners", .serialized, .timeLimit(.minutes(15)))
struct ForeignPageTests {
    @Test("A request that names two hosts, or none, is refused; the edge accepts it")
    func hosts() throws {
        let gateway = try RunningGateway()
        let arguments = [gateway.admin, gateway.plain, gateway.edge, gateway.certificateAuthority]
        let ended = try ChildProcess(client: "two_hosts.py", arguments).finish()
        #expect(ended.status == 0, "\(ended.errors)")
        let lines = ended.output.split(separator: "\n").map(String.init)
        #expect(lines.count == 3 * 7)
        for line in lines {
            let words = line.split(separator: " ")
            let isGood = ["same", "port", "case", "host-only"].contains(words[1])
            #expect(words[2] == (words[0] == "edge" || isGood ? "404" : "403"), "\(line)")
        }
    }
}
