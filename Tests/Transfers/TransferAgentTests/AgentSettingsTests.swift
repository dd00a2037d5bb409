import ServiceManager
import Testing
import TransferAgent

@Suite("An agent's configuration is read whole, with every fault named")
struct AgentSettingsTests {
    private static let places = ["state=/s", "listen=unix:/l"]

    @Test("Every key is taken by --set, and lands where it belongs")
    func keys() throws {
        let settings = try AgentSettingsReader.read(
            file: nil,
            assignments: Self.places + [
                "gateway=https://g:1", "ca=/c", "token=/t", "metered=yes", "trust=/a", "certificate=/p",
                "privateKey=/k",
                "proxy=http://x:3", "machine=/m", "spaceReserve=5", "limits.sessions=2", "limits.transfers=3",
                "limits.running=4", "limits.stateBytes=6", "limits.fileBytes=7", "untakenFor=8", "retry.first=0.5",
                "retry.last=9", "log.level=debug", "log.format=json", "limits.followers=10",
            ]
        )
        #expect(settings.socketPath == "/l" && settings.gateway == "https://g:1" && settings.metered == .yes)
        #expect(settings.spaceReserve == 5 && settings.limits.sessionsMax == 2 && settings.limits.transfersMax == 3)
        #expect(settings.limits.runningMax == 4 && settings.limits.stateBytesMax == 6)
        #expect(settings.limits.followersMax == 10 && settings.limits.connectionsPerUserMax > 10)
        #expect(settings.limits.fileBytesMax == 7 && settings.limits.untakenFor == 8000)
        #expect(settings.retry.first == 500 && settings.retry.last == 9000)
        #expect(settings.logLevel == .debug && settings.logFormat == .json && settings.trust == "/a")
    }

    @Test(
        "A fault names the key and what to write",
        arguments: [
            ("limits.runing=4", "did you mean limits.running?"), ("limits.running=0", "a whole number from 1 to 4096"),
            ("metered=perhaps", "auto, yes or no"), ("retry.last=0.0001", "a number of seconds above 0"),
            ("x", "KEY=VALUE"),
            ("gateway=ftp://h", "an http or https URL"), ("privateKey=/k", "name both"),
            ("retry.last=0.5", "at least as much"), ("listen=127.0.0.1:1", "unix: and an absolute path"),
        ]
    )
    func faults(_ assignment: String, _ words: String) throws {
        let error = try #require(throws: AgentSettingsError.self) {
            try AgentSettingsReader.read(file: nil, assignments: Self.places + [assignment])
        }
        #expect(error.faults.count == 1 && error.description.contains(words), "\(error)")
    }

    @Test("A missing file, and an incomplete configuration, are faults")
    func missing() {
        #expect {
            try AgentSettingsReader.read(file: "/nowhere.json5", assignments: [])
        } throws: { error in
            (error as? AgentSettingsError)?.faults.count == 3
        }
    }
}
