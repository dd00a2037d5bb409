import Policy
import Testing

@Suite("Faults of a trace")
struct TraceErrorTests {
    struct Fault: CustomTestStringConvertible {
        /// The faulty line. It is line 3, after a header and an event at second 10.
        let line: String
        let fault: String
        let remedy: String
        var testDescription: String { self.line }

        init(_ line: String, _ fault: String, _ remedy: String) {
            self.line = line
            self.fault = fault
            self.remedy = remedy
        }
    }

    private static let event = #"{"t": 10, "device": "a", "push": {"apnsID": "p0"}}"#

    private static func error(_ trace: [String], overrides: [(String, Double)] = []) -> TraceError? {
        do {
            try Simulator.run(trace: trace, overrides: overrides) { _ in }
            return nil
        } catch {
            return error
        }
    }

    private static func expect(_ fault: Fault, after lines: [String]) throws {
        let error = try #require(Self.error(lines + [fault.line]))
        #expect(error.line == lines.count + 1)
        #expect(error.fault.contains(fault.fault), "\(error)")
        #expect(error.remedy.contains(fault.remedy), "\(error)")
        #expect(error.description.hasPrefix("line \(lines.count + 1): "))
    }

    private static func submit(_ options: String, _ fault: String, _ remedy: String) -> Fault {
        Fault(#"{"t": 10, "device": "a", "submit": {"identifier": "r", \#(options)}}"#, fault, remedy)
    }

    static let events = [
        Fault("{", "not JSON at column 2", "one whole JSON object"),
        Fault(#"{"t": 10,}"#, "not JSON at column 10: a name in quotes", "one whole JSON object"),
        Fault(#"{"t": 10} {}"#, "more after the end", "one whole JSON object"),
        Fault(#"{"t": 01}"#, "not JSON at column 8", "one whole JSON object"),
        Fault(#"{"t": 1."#, "a digit should be here", "one whole JSON object"),
        Fault(#"{"t": "\ud800"}"#, "a surrogate stands alone", "one whole JSON object"),
        Fault(#"{"t": "abc"#, "a string is not closed", "one whole JSON object"),
        Fault(#"{"t": nul}"#, "not the start of a JSON value", "one whole JSON object"),
        Fault(String(repeating: "[", count: 100_000), "nested more than", "one whole JSON object"),
        Fault("[]", "the line is an array", "must be an object"),
        Fault("{}", "\"t\" is missing", "in seconds"),
        Fault(#"{"t": "10", "device": "a"}"#, "\"t\" is a string", "a number of seconds"),
        Fault(#"{"t": 10.0001, "device": "a"}"#, "more than three decimals", "whole milliseconds"),
        Fault(#"{"t": 1e-4, "device": "a"}"#, "more than three decimals", "whole milliseconds"),
        Fault(#"{"t": -1, "device": "a"}"#, "\"t\" is -1", "from 0 to"),
        Fault(#"{"t": 1e300, "device": "a"}"#, "\"t\" is 1e300", "from 0 to"),
        Fault(#"{"t": 1e99999999999999999999}"#, "\"t\" is 1e9999", "from 0 to"),
        Fault(#"{"t": 10, "t": 11}"#, "\"t\" is there twice", "leave one out"),
        Fault(#"{"t": 10, "push": {"apnsID": "p"}}"#, "\"device\" is missing", "name the device"),
        Fault(#"{"t": 10, "device": 7}"#, "\"device\" is a number", "a string"),
        Fault(#"{"t": 10, "device": ""}"#, "\"device\" is empty", "something in it"),
        Fault(#"{"t": 10, "device": "a"}"#, "\"push\" is missing", "\"finished\" or \"cancel\""),
        Fault(#"{"t": 10, "device": "a", "push": {"apnsID": "p"}, "conditions": {}}"#, "in one line", "its own"),
        Fault(#"{"t": 10, "device": "a", "pusch": {}}"#, "unknown key \"pusch\"", "did you mean \"push\"?"),
        Fault(#"{"t": 10, "device": "a", "zzzzzzzz": {}}"#, "unknown key \"zzzzzzzz\"", "use one of t, device"),
        Fault(#"{"t": 10, "device": "a", "push": 5}"#, "\"push\" is a number", "an object"),
        Fault(#"{"t": 10, "device": "a", "push": {}}"#, "\"push.apnsID\" is missing", "name the push"),
        Fault(#"{"t": 10, "device": "a", "push": {"apnsId": "p"}}"#, "unknown key \"push.apnsId\"", "\"apnsID\"?"),
        Fault(#"{"t": 10, "device": "a", "push": {"apnsID": "p", "priority": 7}}"#, "is 7", "1, 5 or 10"),
        Fault(#"{"t": 10, "device": "a", "push": {"apnsID": "p", "priority": null}}"#, "is null", "1, 5 or 10"),
        Fault(#"{"t": 10, "device": "a", "push": {"apnsID": "p", "expiration": 1.0005}}"#, "decimals", "millis"),
        Fault(#"{"t": 10, "device": "a", "push": {"apnsID": "p", "expiration": -5}}"#, "is -5", "from 0 to"),
        Fault(#"{"t": 10, "device": "a", "conditions": {"batteryLevel": 1.5}}"#, "is 1.5", "from 0 to 1"),
        Fault(#"{"t": 10, "device": "a", "conditions": {"charging": 1}}"#, "is a number", "true or false"),
        Fault(#"{"t": 10, "device": "a", "conditions": {"appState": "actve"}}"#, "is \"actve\"", "\"active\"?"),
        Fault(#"{"t": 10, "device": "a", "conditions": {"termalState": "fair"}}"#, "unknown key", "\"thermalState\"?"),
        Fault(#"{"t": 10, "device": "a", "submit": {"kind": "appRefresh"}}"#, "submit.identifier", "name the task"),
        Fault(#"{"t": 10, "device": "a", "submit": {"identifier": "r"}}"#, "is missing", "processing"),
        Self.submit(#""kind": "urlSession""#, "\"submit.kind\" is \"urlSession\"", "appRefresh"),
        Self.submit(#""kind": "appRefesh""#, "\"submit.kind\" is \"appRefesh\"", "\"appRefresh\"?"),
        Self.submit(#""kind": "appRefresh", "strategy": "fail""#, "the kind appRefresh", "continued requests alone"),
        Self.submit(#""kind": "processing", "title": "x""#, "the kind processing", "continued requests alone"),
        Self.submit(#""kind": "appRefresh", "requiresExternalPower": true"#, "\"submit.", "processing requests"),
        Self.submit(#""kind": "continued", "requiresNetworkConnectivity": false"#, "\"submit.", "processing"),
        Self.submit(#""kind": "continued", "strategy": "zzzzzzzz""#, "is \"zzzzzzzz\"", "queue, fail"),
        Self.submit(#""kind": "continued", "resources": ["gpu", 1]"#, "\"submit.resources\"", "an array of names"),
        Self.submit(#""kind": "appRefresh", "earliestBegin": 1.0005"#, "three decimals", "whole milliseconds"),
        Self.submit(#""kind": "processing", "requiresExternalPower": 1"#, "is a number", "true or false"),
        Fault(#"{"t": 10, "device": "a", "finished": {}}"#, "\"finished.session\" is missing", "name the session"),
        Fault(#"{"t": 10, "device": "a", "finished": {"session": "s", "count": 0}}"#, "is 0", "from 1 to"),
        Fault(#"{"t": 10, "device": "a", "finished": {"session": "s", "count": 1.5}}"#, "is 1.5", "a whole number"),
        Fault(#"{"t": 10, "device": "a", "cancel": {}}"#, "\"cancel\" is an object", "a string"),
        Fault(#"{"t": 10, "device": "a", "cancel": "r", "finished": {"session": "s"}}"#, "in one line", "its own"),
        Fault(#"{"t": 9.999, "device": "a", "conditions": {}}"#, "time runs backwards, by 1 ms", "sort the events"),
        Fault(#"{"until": 5}"#, "a header comes after the first event", "before the first event"),
    ]

    @Test("A fault in an event names its line, what is wrong and what to do", arguments: Self.events)
    func event(_ fault: Fault) throws {
        try Self.expect(fault, after: [#"{"policy": {}}"#, Self.event])
    }

    static let headers = [
        Fault(#"{"policy": []}"#, "\"policy\" is an array", "an object"),
        Fault(#"{"policy": {"lauchInterval": 5}}"#, "\"policy.lauchInterval\"", "\"launchInterval\"?"),
        Fault(#"{"policy": {"launchInterval": "5"}}"#, "is a string", "a number of seconds"),
        Fault(#"{"policy": {"launchInterval": 0}}"#, "is 0", "at least 0.001"),
        Fault(#"{"policy": {"maxAttempts": 1.5}}"#, "is 1.5", "a whole number from 1"),
        Fault(#"{"policy": {"immediateBurst": 0}}"#, "is 0", "a whole number from 1"),
        Fault(#"{"policy": {"maxPenalty": 21}}"#, "is 21", "from 0 to 20"),
        Fault(#"{"policy": {"criticalBattery": 1e999}}"#, "is 1e999", "from 0 to 1"),
        Fault(#"{"worker": []}"#, "\"worker\" has no steps", "pairs such as"),
        Fault(#"{"worker": [["newData"]]}"#, "\"worker[0]\" is no such pair", "pairs such as"),
        Fault(#"{"worker": [["newData", 1], ["newDate", 1]]}"#, "\"worker[1]\" answers", "\"newData\"?"),
        Fault(#"{"worker": [["lost", -1]]}"#, "\"worker[0]\" is -1", "from 0 to"),
        Fault(#"{"tasks": []}"#, "\"tasks\" is an array", "an object"),
        Fault(#"{"tasks": {"r": []}}"#, "\"tasks.r\" has no steps", "steps such as"),
        Fault(#"{"tasks": {"r": [["success"]]}}"#, "\"tasks.r[0]\" is no such step", "steps such as"),
        Fault(#"{"tasks": {"r": [["success", 1, 2, 3]]}}"#, "\"tasks.r[0]\" is no such step", "steps such as"),
        Fault(#"{"tasks": {"r": [["success", 1, "2"]]}}"#, "\"tasks.r[0]\" is no such step", "steps such as"),
        Fault(#"{"tasks": {"r": [["sucess", 1]]}}"#, "\"tasks.r[0]\" answers", "\"success\"?"),
        Fault(#"{"tasks": {"r": [["success", -1]]}}"#, "\"tasks.r[0]\" is -1", "from 0 to"),
        Fault(#"{"tasks": {"r": [["success", 1, 0.0004]]}}"#, "advances every 0.0004", "at least every 0.001"),
        Fault(#"{"tasks": {"r": [["lost", 1]], "r": [["lost", 1]]}}"#, "is there twice", "leave one out"),
        Fault(#"{"permitted": "r"}"#, "\"permitted\" is a string", "an array of identifiers"),
        Fault(#"{"permitted": ["r", ""]}"#, "\"permitted\" has something else", "an array of identifiers"),
        Fault(#"{"policy": {"progressWindow": 0}}"#, "is 0", "at least 0.001"),
        Fault(#"{"policy": {"continuedMax": 0}}"#, "is 0", "a whole number from 1"),
        Fault(#"{"until": "now"}"#, "\"until\" is a string", "a number of seconds"),
        Fault(#"{"until": 5, "t": 1}"#, "stands in one line with keys of an event", "a line of their own"),
    ]

    @Test("A fault in a header names its line, what is wrong and what to do", arguments: Self.headers)
    func header(_ fault: Fault) throws {
        try Self.expect(fault, after: ["", #"{"until": 5}"#])
    }

    @Test("A fault after the end of the simulation is still reported")
    func afterUntil() {
        #expect(Self.error([#"{"until": 1}"#, Self.event, "{"])?.line == 3)
    }

    @Test("An unknown or out-of-range override is reported without a line number")
    func overrides() {
        let unknown = Self.error([], overrides: [("policy.lauchInterval", 5)])
        #expect(unknown?.line == nil)
        #expect(unknown?.description == #"unknown key "policy.lauchInterval"; did you mean "launchInterval"?"#)
        let outOfRange = Self.error([], overrides: [("maxAttempts", 0)])
        #expect(outOfRange?.description.hasPrefix(#""policy.maxAttempts" is 0.0; it must be a whole number"#) == true)
    }

    @Test("Any prefix of a good line is a fault, and none of them ends the process")
    func prefixes() {
        for count in 1..<Self.event.utf8.count {
            #expect(Self.error([String(Self.event.prefix(count))])?.line == 1, "\(count) bytes")
        }
        #expect(Self.error([Self.event]) == nil)
    }
}
