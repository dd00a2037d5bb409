import Policy
import Testing

@Suite("Simulator")
struct SimulatorTests {
    private static func run(_ trace: [String], overrides: [(String, Double)] = []) throws -> [String] {
        var lines: [String] = []
        try Simulator.run(trace: trace, overrides: overrides) { lines.append($0) }
        return lines
    }

    private static func push(_ name: String, _ device: String, at time: String) -> String {
        #"{"t": \#(time), "device": "\#(device)", "push": {"apnsID": "\#(name)", "priority": 5}}"#
    }

    @Test("An empty trace has a summary alone")
    func empty() throws {
        #expect(try Self.run(["", "  "]) == [#"{"summary":{"pending":0,"inFlight":0}}"#])
    }

    @Test("Fourteen pushes over 105 minutes give seven launches, and one more at the end")
    func headline() throws {
        let trace = (0..<14).map { Self.push("p\($0)", "a", at: "\($0 * 450)") }
        let launches = try Self.run(trace).filter { $0.contains("\"launch\"") }
        #expect(launches.count == 8)
        #expect(launches.last?.contains(#"{"t":6300,"device":"a","event":"launch","apnsID":"p13""#) == true)
    }

    @Test("Overrides win over the trace's own parameters")
    func overrides() throws {
        let trace = [
            #"{"policy": {"launchInterval": 60}}"#, Self.push("p0", "a", at: "0"), Self.push("p1", "a", at: "5"),
        ]
        #expect(try Self.run(trace).contains { $0.hasPrefix(#"{"t":60,"#) })
        #expect(
            try Self.run(trace, overrides: [("policy.launchInterval", 7.5)]).contains { $0.hasPrefix(#"{"t":7.5,"#) }
        )
    }

    @Test("Durations are rounded to milliseconds, halves up")
    func rounded() throws {
        let trace = [
            #"{"policy": {"launchInterval": 1.0006, "refreshFlex": 0}}"#, #"{"worker": [["newData", 0.0005]]}"#,
            #"{"tasks": {"r": [["success", 0.0004]]}}"#, Self.push("p0", "a", at: "0"),
            #"{"t": 0.5, "device": "a", "submit": {"identifier": "r", "kind": "appRefresh"}}"#,
        ]
        let results = try Self.run(trace).filter { $0.contains("\"result\"") }
        #expect(results.first?.hasPrefix(#"{"t":0.001,"#) == true)
        #expect(results.last?.hasPrefix(#"{"t":1.001,"#) == true)
    }

    @Test("Parameters of background tasks can be overridden as those of pushes can")
    func taskOverrides() throws {
        let trace = [#"{"t": 0, "device": "a", "submit": {"identifier": "p", "kind": "processing"}}"#]
        let slow = [#"{"tasks": {"p": [["none", 0]]}}"#] + trace
        let lines = try Self.run(slow, overrides: [("policy.processingWindow", 7.5)])
        #expect(lines.contains { $0.hasPrefix(#"{"t":7.5,"#) })
    }

    @Test("At one moment devices act in the order in which they were first named, before the events of that moment")
    func order() throws {
        let trace = [Self.push("p0", "b", at: "0"), Self.push("p1", "a", at: "0"), Self.push("p2", "c", at: "1")]
        let order = try Self.run(trace).filter { $0.contains(#""t":1,"#) }.compactMap {
            $0.split(separator: "\"")[safe: 5]
        }
        #expect(order == ["b", "a", "c", "c"])
    }

    @Test("Names are escaped, and read back with their escapes")
    func escapes() throws {
        let line = #"{"t": 0.010, "device": "\u00e9\"\ud83d\ude00\n", "push": {"apnsID": "x"}}"#
        let lines = try Self.run([line])
        #expect(lines.first?.hasPrefix(#"{"t":0.01,"device":"é\"😀\n","event":"push""#) == true, "\(lines)")
    }
}

extension Array {
    fileprivate subscript(safe index: Int) -> Element? {
        self.indices.contains(index) ? self[index] : nil
    }
}
