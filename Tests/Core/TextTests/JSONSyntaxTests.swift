import Testing
import Wire

@Suite("The grammar of JSON", .timeLimit(.minutes(15)))
struct JSONSyntaxTests {
    private func fault(_ text: String) -> JSONSyntaxFault? { JSONSyntax.fault(in: Array(text.utf8)) }

    @Test(
        "What is JSON has no fault, whatever its strings and numbers hold",
        arguments: [
            "{}", " [ ] ", "{\"a\":[1,-0.5e+10,true,false,null,\"\\ud800\\n\\\"\"],\"b\":{\"c\":{}}}\n", "\"x\"", "0",
            "1e999",
            "[[],[[]],{}]",
        ]
    )
    func good(text: String) {
        #expect(self.fault(text) == nil)
    }

    @Test("Deep nesting takes no stack")
    func deep() {
        let deep = String(repeating: "[", count: 100_000)
        #expect(self.fault(deep + String(repeating: "]", count: 100_000)) == nil)
        #expect(self.fault(deep)?.isCutShort == true)
    }

    @Test(
        "A text that was cut says what was left open, and where that begins",
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
        "Another fault says what should be there, and where",
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
            ("\"a\nb\"", "line 1, column 3: a control character in a string must be escaped"),
        ]
    )
    func wrong(text: String, what: String) {
        #expect(self.fault(text) == JSONSyntaxFault(what: what, isCutShort: false))
    }

    @Test("What is not UTF-8 is named as such")
    func notUTF8() {
        #expect(JSONSyntax.fault(in: [0x22, 0xFF, 0x22])?.what == "it is not UTF-8")
    }
}
