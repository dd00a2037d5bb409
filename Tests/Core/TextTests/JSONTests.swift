import Testing
import Wire

@Suite("Reading JSON")
struct JSONReaderTests {
    @Test("Members keep their order, numbers keep their text, and escapes are decoded")
    func values() throws {
        let text = #" {"b": [null, true, false, -1.50e+2], "a": "\u00e9\ud83d\ude00\n\/", "b": {}} "#
        guard case .object(let members) = try JSONReader.read(text) else {
            Issue.record("no object")
            return
        }
        #expect(members.map(\.name) == ["b", "a", "b"])
        guard case .array(let elements) = members[0].value, case .number(let number) = elements[3] else {
            Issue.record("no list with a number")
            return
        }
        #expect(Array(elements[..<3]) == [.null, .bool(true), .bool(false)])
        #expect(number.text == "-1.50e+2")
        #expect(number.double == -150)
        #expect(members[1].value == .string("é😀\n/"))
        // As in most parsers, the last of two members with the same name counts.
        #expect(try JSONReader.read(text)["b"] == .object([]))
        #expect(try JSONReader.read(text)["c"] == nil)
    }

    @Test(
        "Text that is not JSON is refused with its column",
        arguments: [
            ("", 1), ("{", 2), ("[1,]", 4), ("{'a': 1}", 2), ("01", 2), ("1 2", 3), ("\"a", 3), ("\"\\x\"", 4),
            ("\"\\ud800\"", 8), ("nul", 1), ("{\"a\" 1}", 6), ("[1 // one\n]", 4), ("1.", 3), ("\"\t\"", 2),
        ]
    )
    func faults(text: String, column: Int) throws {
        let error = try #require(throws: JSONFault.self) { try JSONReader.read(text) }
        #expect(error.column == column, "\(error.what)")
    }

    @Test(
        "A repeated name in an object is a fault if that is requested",
        arguments: [
            (#"{"a": 1, "a": 1}"#, "a"), (#"{"a": 1, "\u0061": 2}"#, "a"), (#"{"b": {"a": 1, "c": 2, "a": 1}}"#, "b"),
            (#"{"b": [{"a": 1, "a": 1}]}"#, "b"), (#"[{"a": 1, "a": 1}]"#, nil),
        ] as [(String, String?)]
    )
    func repeatedNames(text: String, member: String?) throws {
        _ = try JSONReader.read(text)
        let error = try #require(throws: JSONFault.self) { try JSONReader.read(text, refusingRepeatedNames: true) }
        #expect(error.kind == .repeatedName && error.member == member, "\(error)")
        _ = try JSONReader.read(#"{"a": {"a": 1}, "b": [{"a": 1}, {"a": 1}]}"#, refusingRepeatedNames: true)
        // Two names in JSON, although the strings are equal by canonical equivalence.
        _ = try JSONReader.read(#"{"\u00e9": 1, "e\u0301": 2}"#, refusingRepeatedNames: true)
    }

    @Test("Nesting is accepted up to a depth of sixteen")
    func depth() throws {
        func nested(_ depth: Int) -> String {
            String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
        }
        _ = try JSONReader.read(nested(16))
        #expect(throws: JSONFault.self) { try JSONReader.read(nested(17)) }
    }

    @Test(
        "A number made from a double has no fraction that says nothing",
        arguments: [(5.0, "5"), (-1.0, "-1"), (0.25, "0.25"), (1e300, "1e+300"), (Double.infinity, "inf")]
    )
    func doubles(double: Double, text: String) {
        #expect(JSONNumber(double).text == text)
        #expect(JSONNumber(double).double == double)
    }
}

@Suite("JSON5", .timeLimit(.minutes(15)))
struct JSON5ReaderTests {
    private func read(_ text: String) throws(JSON5Fault) -> JSONValue { try JSON5Reader.read(Array(text.utf8)) }

    private func problem(_ text: String) -> String? {
        do throws(JSON5Fault) {
            _ = try self.read(text)
            return nil
        } catch {
            return error.problem
        }
    }

    @Test("JSON5 additions are read: comments, bare names, both quotes, trailing commas, numbers of any form")
    func additions() throws {
        let text = """
            // a comment
            { b: 'it\\'s', "a": [0x1F, .5, 5., +2, -3e-1, Infinity, -Infinity,], /* another
            */ $c_1: "over \\
            two lines", \\u0064: '\\x41\\u00e9\\v\\0\\z', e: {},\u{A0}f: [], } // the end
            """
        let value = try self.read(text)
        let numbers = value["a"].map { value -> [Double] in
            guard case .array(let elements) = value else { return [] }
            return elements.map { if case .number(let number) = $0 { number.double } else { 0 } }
        }
        #expect(numbers == [31, 0.5, 5, 2, -0.3, .infinity, -.infinity])
        #expect(value["b"] == .string("it's"))
        #expect(value["$c_1"] == .string("over two lines"))
        #expect(value["d"] == .string("A\u{E9}\u{B}\0z"))
        #expect(value["e"] == .object([]) && value["f"] == .array([]))
        guard case .object(let members) = value else { return #expect(Bool(false), "no object") }
        #expect(members.map(\.name) == ["$c_1", "a", "b", "d", "e", "f"])
    }

    @Test("NaN, surrogate pairs, other scripts and escapes of plain characters are read")
    func rarities() throws {
        #expect(try self.read("'\\ud83d\\ude00 \u{1F600} \\\u{E9}'") == .string("\u{1F600} \u{1F600} \u{E9}"))
        #expect(try self.read("{ gr\u{F6}\u{DF}e: null }")["gr\u{F6}\u{DF}e"] == .null)
        guard case .number(let number) = try self.read("NaN") else { return #expect(Bool(false), "no number") }
        #expect(number.double.isNaN)
        #expect(try self.read("\u{FEFF}true") == .bool(true))
    }

    @Test(
        "The first fault is reported with its line and column",
        arguments: [
            ("{\n  edge: 'a'\n  admin: 'b'\n}", "line 3, column 3: a comma or } should be here"),
            ("{\n  edge: 'a',\n", "line 1, column 1: the { that stands here is not closed"),
            ("{ a: [1, 2", "line 1, column 6: the [ that stands here is not closed"),
            ("{ \u{E4}: 'x' y }", "line 1, column 10: a comma or } should be here"),
            ("{ edge 'a' }", "line 1, column 8: a colon should be here, behind the name \"edge\""),
            ("{ edge: 'a }\n", "line 1, column 9: the text that begins here is not closed with its quote"),
            ("{ a: 127.0.0.1 }", "line 1, column 6: \"127.0.0.1\" is not a number; write text in quotes"),
            ("{ a: sqlite }", "line 1, column 6: \"sqlite\" is not a value; write text in quotes"),
            ("{ a: }", "line 1, column 6: a value should be here"),
            ("{ 1a: 2 }", "line 1, column 3: a name should be here"),
            ("", "line 1, column 1: the text ends where a value should be"),
            ("{} {}", "line 1, column 4: there is more after the end of the value"),
            ("{ a: 1 /* }", "line 1, column 8: the comment that begins here is not closed with */"),
            ("[1 / 2]", "line 1, column 4: a comment begins with // or /*"),
            ("'\\u12'", "line 1, column 6: 4 hexadecimal digits should be here"),
            ("'\\ud800'", "line 1, column 2: a surrogate stands alone"),
            ("010", "line 1, column 1: \"010\" is not a number; write text in quotes"),
            ("0x", "line 1, column 1: \"0x\" is not a number; write text in quotes"),
        ]
    )
    func places(text: String, problem: String) {
        #expect(self.problem(text) == "is not JSON5 (\(problem))")
    }

    @Test("A repeated name is a fault with both positions, however it is written, and at any depth")
    func duplicates() {
        let text = "{\n  policy: {\n    launchInterval: 1,\n    'launchInterval': 2,\n  },\n}"
        #expect(self.problem(text) == "has \"launchInterval\" twice (line 3, column 5; line 4, column 5)")
        #expect(self.problem("{ a: { x: 1 }, b: { x: 1 } }") == nil)
    }

    @Test("Deep nesting and invalid UTF-8 are faults, without a crash")
    func bounds() {
        let deep = String(repeating: "[", count: 100_000)
        let depth = "objects and arrays are nested more than 64 deep"
        #expect(self.problem(deep) == "is not JSON5 (line 1, column 65: \(depth))")
        let fault = #expect(throws: JSON5Fault.self) { try JSON5Reader.read(Array("{\n".utf8) + [0xFF]) }
        #expect(fault?.problem == "is not JSON5 (line 2 is not UTF-8)")
    }
}

@Suite("Numbers of JSON")
struct JSONNumberTests {
    @Test(
        "A number of any size is read as seconds, or refused as too large or too fine",
        arguments: [
            ("0", .exact(0)), ("-0", .exact(0)), ("-0.000", .exact(0)), ("0e999999999999999999999", .exact(0)),
            ("1.5", .exact(1500)), ("-1.5", .exact(-1500)), ("1e3", .exact(1_000_000)), ("0.0005", .tooFine),
            ("1e-400", .tooFine), ("1e-99999999999999999999", .tooFine), ("1e999", .tooLarge), ("1e308", .tooLarge),
            ("9223372036854775807", .tooLarge), ("-9223372036854775808", .tooLarge),
            ("1e99999999999999999999", .tooLarge), ("999999999999999", .exact(999_999_999_999_999_000)),
        ] as [(String, JSONNumber.Milliseconds)]
    )
    func milliseconds(text: String, expected: JSONNumber.Milliseconds) throws {
        guard case .number(let number) = try JSONReader.read(text) else {
            Issue.record("no number")
            return
        }
        #expect(number.milliseconds == expected)
        // Numbers too large for a double become infinite, never NaN.
        #expect(!number.double.isNaN)
    }

    @Test("JSON5's Infinity and NaN are refused as durations", arguments: [Double.infinity, -.infinity, .nan])
    func millisecondsOfWords(number: Double) {
        #expect(JSONNumber(number).milliseconds == .tooLarge)
    }
}

@Suite("The grammar of JSON", .timeLimit(.minutes(15)))
struct JSONSyntaxTests {
    private func fault(_ text: String) -> JSONSyntaxFault? { JSONSyntax.fault(in: Array(text.utf8)) }

    @Test(
        "Valid JSON has no fault, whatever its strings and numbers contain",
        arguments: [
            "{}", " [ ] ", "{\"a\":[1,-0.5e+10,true,false,null,\"\\ud800\\n\\\"\"],\"b\":{\"c\":{}}}\n", "\"x\"", "0",
            "1e999",
            "[[],[[]],{}]",
        ]
    )
    func good(text: String) {
        #expect(self.fault(text) == nil)
    }

    @Test("A payload may be nested as deep as the gateway accepts, and 100,000 levels use no stack")
    func deep() {
        func nested(_ depth: Int) -> String {
            String(repeating: "[", count: depth) + "0" + String(repeating: "]", count: depth)
        }
        #expect(self.fault(nested(PayloadClassifier.depthMax)) == nil)
        let what = "line 1, column 513: objects and arrays are nested more than 512 deep"
        let fault = JSONSyntaxFault(what: what, isCutShort: false)
        #expect(self.fault(nested(PayloadClassifier.depthMax + 1)) == fault)
        #expect(self.fault(nested(PayloadClassifier.depthMax + 1).replacing("0", with: "")) == fault)
        #expect(self.fault(String(repeating: "[", count: 100_000)) == fault)
    }

    @Test(
        "The fault of a truncated text names the open element and its position",
        arguments: [
            ("{\"aps\":{\"content-available\":1}", "in the object that begins at line 1, column 1"),
            ("{\n \"aps\": {", "in the object that begins at line 2, column 9"),
            ("{\"a\":[1,", "in the list that begins at line 1, column 6"),
            ("{\"a\":\"b", "in the string that begins at line 1, column 6"),
            ("{\"a", "in the string that begins at line 1, column 2"),
            ("{\"a\"", "in the object that begins at line 1, column 1"),
            ("{\"a\":", "in the object that begins at line 1, column 1"),
        ]
    )
    func cut(text: String, what: String) {
        #expect(self.fault(text) == JSONSyntaxFault(what: what, isCutShort: true))
    }

    @Test(
        "Any other fault says what should be there, and where",
        arguments: [
            ("", "it is empty"), (" \n", "it is empty"),
            ("{aps:1}", "line 1, column 2: a name in double quotes should be here"),
            ("{\"a\" 1}", "line 1, column 6: a colon should be here"),
            ("{\"a\":1,}", "line 1, column 8: a name in double quotes should be here"),
            ("[1 2]", "line 1, column 4: a comma or ] should be here"),
            ("{\"a\":'b'}", "line 1, column 6: a value should be here; text stands in double quotes"),
            ("{} {}", "line 1, column 4: there is more after the end of the value"),
            ("[01]", "line 1, column 3: a comma or ] should be here"),
            ("[-]", "line 1, column 3: a digit should be here"),
            ("\"\\x\"", "line 1, column 3: a backslash must be followed by one of \" \\ / b f n r t u"),
            ("\"\\u12x4\"", "line 1, column 6: four hexadecimal digits should be here"),
            ("\"a\nb\"", "line 1, column 3: control characters in a string must be escaped"),
        ]
    )
    func wrong(text: String, what: String) {
        #expect(self.fault(text) == JSONSyntaxFault(what: what, isCutShort: false))
    }

    @Test("Text that is not UTF-8 is refused as not UTF-8")
    func notUTF8() {
        #expect(JSONSyntax.fault(in: [0x22, 0xFF, 0x22])?.what == "it is not UTF-8")
    }
}
