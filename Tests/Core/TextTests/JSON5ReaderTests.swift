import Testing
import Wire

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

    @Test("What JSON5 adds to JSON is read: comments, bare names, both quotes, commas at the end, numbers of any form")
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

    @Test("NaN, surrogate pairs, other scripts and characters that stand for themselves behind a backslash are read")
    func rarities() throws {
        #expect(try self.read("'\\ud83d\\ude00 \u{1F600} \\\u{E9}'") == .string("\u{1F600} \u{1F600} \u{E9}"))
        #expect(try self.read("{ gr\u{F6}\u{DF}e: null }")["gr\u{F6}\u{DF}e"] == .null)
        guard case .number(let number) = try self.read("NaN") else { return #expect(Bool(false), "no number") }
        #expect(number.double.isNaN)
        #expect(try self.read("\u{FEFF}true") == .bool(true))
    }

    @Test(
        "The first fault is told with its line and its column",
        arguments: [
            ("{\n  edge: 'a'\n  admin: 'b'\n}", "line 3, column 3: a comma or } should be here"),
            ("{\n  edge: 'a',\n", "line 1, column 1: the { that stands here is not closed"),
            ("{ a: [1, 2", "line 1, column 6: the [ that stands here is not closed"),
            ("{ \u{E4}: 'x' y }", "line 1, column 10: a comma or } should be here"),
            ("{ edge 'a' }", "line 1, column 8: a colon should be here, behind the name \"edge\""),
            ("{ edge: 'a }\n", "line 1, column 9: the text that begins here is not closed with its quote"),
            ("{ a: 127.0.0.1 }", "line 1, column 6: \"127.0.0.1\" is no number; text stands in quotes"),
            ("{ a: sqlite }", "line 1, column 6: \"sqlite\" is no value; text stands in quotes"),
            ("{ a: }", "line 1, column 6: a value should be here"),
            ("{ 1a: 2 }", "line 1, column 3: a name should be here"),
            ("", "line 1, column 1: the text ends where a value should be"),
            ("{} {}", "line 1, column 4: there is more after the end of the value"),
            ("{ a: 1 /* }", "line 1, column 8: the comment that begins here is not closed with */"),
            ("[1 / 2]", "line 1, column 4: a comment begins with // or /*"),
            ("'\\u12'", "line 1, column 6: 4 hexadecimal digits should be here"),
            ("'\\ud800'", "line 1, column 2: a surrogate stands alone"),
            ("010", "line 1, column 1: \"010\" is no number; text stands in quotes"),
            ("0x", "line 1, column 1: \"0x\" is no number; text stands in quotes"),
        ]
    )
    func places(text: String, problem: String) {
        #expect(self.problem(text) == "is not JSON5 (\(problem))")
    }

    @Test("The same name twice is a fault that tells both places, however it is written, and at any depth")
    func duplicates() {
        let text = "{\n  policy: {\n    launchInterval: 1,\n    'launchInterval': 2,\n  },\n}"
        #expect(self.problem(text) == "has \"launchInterval\" twice (line 3, column 5; line 4, column 5)")
        #expect(self.problem("{ a: { x: 1 }, b: { x: 1 } }") == nil)
    }

    @Test("Deep nesting and what is not UTF-8 are faults, and no crash")
    func bounds() {
        let deep = String(repeating: "[", count: 100_000)
        #expect(self.problem(deep) == "is not JSON5 (line 1, column 65: values are nested more than 64 deep)")
        let fault = #expect(throws: JSON5Fault.self) { try JSON5Reader.read(Array("{\n".utf8) + [0xFF]) }
        #expect(fault?.problem == "is not JSON5 (line 2 is not UTF-8)")
    }
}
