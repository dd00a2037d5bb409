import CommandLineTool
import Testing
import Wire
import wakegate

struct DeviceListCommandTests {
    private func parsed(_ line: String) throws -> ParsedCommand {
        let words = line.split(separator: " ").map(String.init)
        guard case .run(let parsed) = try CommandParser(CommandTable.all).parse(words) else {
            throw CommandFailure.usage("no command")
        }
        return parsed
    }

    @Test(
        "A page is asked for with what narrows the list",
        arguments: [
            ("", nil, "/v1/devices?limit=7"),
            ("--topic a.b --state held --hold battery", nil, "/v1/devices?topic=a.b&state=held&hold=battery&limit=7"),
            ("--state idle", "ab", "/v1/devices?state=idle&limit=7&after=ab"),
        ] as [(String, String?, String)]
    )
    func paths(options: String, after: String?, path: String) throws {
        #expect(DeviceListCommand.path(try self.parsed("device list \(options)"), limit: 7, after: after) == path)
    }

    @Test("Devices are a table with one head however many pages there are")
    func table() throws {
        let device = try JSONReader.read(
            """
            {"token": "ab", "topic": "a.b", "state": "held", "held": ["battery", "priority"], "eligibleAt": null,
             "lastLaunchAt": 1700000000000}
            """
        )
        let head =
            "state     held               may launch at         last launch           topic                     token\n"
        let line =
            "held      battery            -                     2023-11-14T22:13:20Z  a.b                       ab\n"
        #expect(DeviceListCommand.text([device], withHead: true) == head + line)
        #expect(DeviceListCommand.text([device], withHead: false) == line)
        #expect(DeviceListCommand.text([], withHead: true).isEmpty)
    }
}
