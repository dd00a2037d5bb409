import Testing
import Wire

@Suite("Reading JSON")
struct JSONReaderTests {
    @Test("Members keep their order, numbers their text, and escapes become their letters")
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
        // As most readers have it, the last of two members by one name counts.
        #expect(try JSONReader.read(text)["b"] == .object([]))
        #expect(try JSONReader.read(text)["c"] == nil)
    }

    @Test(
        "What is not JSON is refused at its column",
        arguments: [
            ("", 1), ("{", 2), ("[1,]", 4), ("{'a': 1}", 2), ("01", 2), ("1 2", 3), ("\"a", 3), ("\"\\x\"", 4),
            ("\"\\ud800\"", 8), ("nul", 1), ("{\"a\" 1}", 6), ("[1 // one\n]", 4), ("1.", 3), ("\"\t\"", 2),
        ]
    )
    func faults(text: String, column: Int) {
        do throws(JSONFault) {
            _ = try JSONReader.read(text)
            Issue.record("\(text) was read")
        } catch {
            #expect(error.column == column, "\(error.what)")
        }
    }

    @Test(
        "A name that appears twice in one object is a fault where that is asked for",
        arguments: [
            (#"{"a": 1, "a": 1}"#, "a"), (#"{"a": 1, "\u0061": 2}"#, "a"), (#"{"b": {"a": 1, "c": 2, "a": 1}}"#, "b"),
            (#"{"b": [{"a": 1, "a": 1}]}"#, "b"), (#"[{"a": 1, "a": 1}]"#, nil),
        ] as [(String, String?)]
    )
    func repeatedNames(text: String, member: String?) throws {
        _ = try JSONReader.read(text)
        do throws(JSONFault) {
            _ = try JSONReader.read(text, refusingRepeatedNames: true)
            Issue.record("\(text) was read")
        } catch {
            #expect(error.kind == .repeatedName && error.member == member, "\(error)")
        }
        _ = try JSONReader.read(#"{"a": {"a": 1}, "b": [{"a": 1}, {"a": 1}]}"#, refusingRepeatedNames: true)
        // Two names for JSON, and one for strings that compare by canonical equivalence.
        _ = try JSONReader.read(#"{"\u00e9": 1, "e\u0301": 2}"#, refusingRepeatedNames: true)
    }

    @Test("Nesting is taken sixteen deep and no deeper")
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
