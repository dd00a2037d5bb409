import Foundation
import HTTPClient
import Testing
import TransferAgent
import Wire

@Suite("How an attempt interprets answers")
struct NetworkTests {
    @Test(
        "A range of bytes is read, and nothing else",
        arguments: [
            ("bytes 0-9/10", 0, 10), ("bytes 5-9/*", 5, nil), ("Bytes 5-5/6", 5, 6), ("bytes 5-4/10", nil, nil),
            ("bytes 0-9/9", nil, nil), ("bytes */10", nil, nil), ("items 0-9/10", nil, nil), ("", nil, nil),
            ("bytes 5-9223372036854775807/*", nil, nil), ("bytes 5-9223372036854775806/*", 5, nil),
        ] as [(String, Int64?, Int64?)]
    )
    func ranges(_ text: String, _ first: Int64?, _ total: Int64?) {
        let range = ContentRange(text)
        #expect(range?.first == first)
        if first != nil { #expect(range?.total == total) }
    }

    @Test(
        "A length is read, and an invalid one is distinguished from a missing one",
        arguments: [
            ([], -1), (["5"], 5), (["0"], 0), (["5, 5"], 5), (["5", "5"], 5), (["9223372036854775807"], .max),
            (["9223372036854775808"], nil), (["-5"], nil), (["+5"], nil), (["0x10"], nil), (["5, 6"], nil), ([""], nil),
            (["5 6"], nil), ([" 5\t"], 5),
        ] as [([String], Int64?)]
    )
    func lengths(_ fields: [String], _ length: Int64?) {
        var response = HTTPResponse(status: 200, headers: fields.map { ("content-length", $0) })
        #expect(EntityLength.announced(in: response) == length)
        response.headers.append(("transfer-encoding", "chunked"))
        #expect(EntityLength.announced(in: response) == -1)
    }

    private static let monday = "Mon, 23 Nov 2026 08:00:00 GMT"
    private static let tuesday = "Tue, 24 Nov 2026 08:00:00 GMT"

    @Test(
        "A part belongs to an entity only if it has its validator",
        arguments: [
            ("\"a\"", [("etag", "\"a\"")], true), ("\"a\"", [("etag", "\"b\"")], false),
            ("\"a\"", [("etag", "W/\"a\"")], false), ("\"a\"", [("last-modified", Self.monday)], false),
            ("\"a\"", [], false), (Self.monday, [("last-modified", Self.monday)], true), (Self.monday, [], true),
            (Self.monday, [("last-modified", Self.tuesday)], false), (Self.monday, [("etag", "\"b\"")], false),
            (Self.monday, [("last-modified", Self.monday), ("etag", "W/\"b\"")], false),
        ] as [(String, [(String, String)], Bool)]
    )
    func parts(_ validator: String, _ fields: [(String, String)], _ isSame: Bool) {
        let response = HTTPResponse(status: 206, headers: fields.map { (name: $0.0, value: $0.1) })
        #expect(EntityValidator.isSame(validator, in: response) == isSame)
        #expect(!EntityValidator.isSame(nil, in: response))
        #expect(EntityValidator.isOther(validator, in: response) == (!isSame && !fields.isEmpty))
    }

    @Test(
        "Only a strong tag, or without a tag a date that is older than the answer, is a validator",
        arguments: [
            ([("etag", "\"a\""), ("last-modified", Self.monday)], "\"a\""),
            ([("etag", "W/\"a\""), ("last-modified", Self.monday), ("date", Self.tuesday)], nil),
            ([("etag", "a"), ("last-modified", Self.monday), ("date", Self.tuesday)], nil),
            ([("last-modified", Self.monday), ("date", Self.tuesday)], Self.monday),
            ([("last-modified", Self.monday), ("date", "Mon, 23 Nov 2026 08:00:02 GMT")], Self.monday),
            ([("last-modified", Self.monday), ("date", "Mon, 23 Nov 2026 08:00:01 GMT")], nil),
            ([("last-modified", Self.tuesday), ("date", Self.monday)], nil), ([("last-modified", Self.monday)], nil),
            ([("last-modified", "yesterday"), ("date", Self.monday)], nil), ([], nil),
        ] as [([(String, String)], String?)]
    )
    func validators(_ fields: [(String, String)], _ validator: String?) {
        let response = HTTPResponse(status: 200, headers: fields.map { (name: $0.0, value: $0.1) })
        #expect(EntityValidator.of(response) == validator)
    }

    @Test(
        "The total length is read from an answer 416",
        arguments: [
            ("bytes */10", 10), ("Bytes */0", 0), ("bytes 0-9/10", nil), ("bytes */*", nil), ("bytes */-1", nil),
            ("bytes */+1", nil), ("*/10", nil), ("", nil),
        ] as [(String, Int64?)]
    )
    func wholeLengths(_ text: String, _ length: Int64?) {
        #expect(ContentRange.wholeLength(text) == length)
    }

    @Test("Credentials are sent only to the server they belong to")
    func origins() {
        #expect(Redirection.isSameOrigin("https://a/x", "https://A:443/y"))
        #expect(!Redirection.isSameOrigin("https://a/x", "http://a/x"))
        #expect(!Redirection.isSameOrigin("https://a/x", "https://a:8443/x"))
        #expect(!Redirection.isSameOrigin("https://a/x", "https://b/x"))
        for name in ["authorization", "Cookie", "private-token", "x-amz-security-token", "X-Api-Key"] {
            #expect(Redirection.isSecret(name), "\(name)")
        }
        #expect(!Redirection.isSecret("Accept") && !Redirection.isSecret("content-type"))
    }

    @Test(
        "A redirect keeps the credentials of the URL within the server, and nowhere else",
        arguments: [
            ("/x", "https://u:p%40@h/x"), ("https://H:443/x", "https://u:p%40@h:443/x"),
            ("https://v@h/x", "https://v@h/x"), ("http://h/x", "http://h/x"),
            ("https://i/x?a=u:p@h", "https://i/x?a=u:p@h"),
            ("//i/x", "https://i/x"), ("ftp://h/x", nil),
        ] as [(String, String?)]
    )
    func credentials(location: String, target: String?) {
        let found = Redirection.target(location, at: "https://h/y", of: "https://u:p%40@h/film?b=c@d")
        #expect(found?.lowercased() == target)
        #expect(Redirection.target("/x", at: "https://h/y", of: "https://h/film") == "https://h/x")
    }

    @Test("A redirect keeps the method where RFC 9110 says so")
    func methods() {
        #expect(Redirection.method(after: 303, of: "PUT") == "GET")
        #expect(Redirection.method(after: 302, of: "POST") == "GET")
        #expect(Redirection.method(after: 307, of: "POST") == "POST")
        #expect(Redirection.method(after: 308, of: "PUT") == "PUT")
        #expect(!Redirection.isRedirect(304) && Redirection.isRedirect(308))
    }

    @Test("A URL is shown without a password, and logged without its query")
    func shown() {
        #expect(HTTPURL.withoutCredentials("https://u:p@h/a@b?c=d") == "https://h/a@b?c=d")
        #expect(HTTPURL.withoutCredentials("https://h?x=u@v") == "https://h?x=u@v")
        #expect(Redirection.forLogs("https://u@h/a?token=1#f") == "https://h/a")
    }

    @Test("The OpenAPI document has exactly the operations of the routes")
    func document() throws {
        let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appendingPathComponent("../../../Sources/Transfers/TransferAgent/OpenAPI/openapi.json")
        let text = try String(contentsOf: file, encoding: .utf8)
        let document = try JSONReader.read(text)
        var told: Set<String> = []
        for path in document["paths"]?.members ?? [] {
            let parts = path.name.split(separator: "/").map { $0.hasPrefix("{") ? "*" : String($0) }
            for method in path.value.members {
                told.insert("\(method.name.uppercased()) \(parts.joined(separator: "/"))")
            }
        }
        let operations = AgentOperation.allCases.map(\.rawValue)
        #expect(told == Set(operations) && operations.count == told.count)
    }

    @Test("Sessions and transfers have the same limits of timeouts, which the error names", arguments: [true, false])
    func timeouts(ofSession: Bool) throws {
        func read(_ timeout: String) throws(APIError) -> Int64? {
            let json = #"{"kind":"download","url":"http://h/","requestTimeout":\#(timeout)}"#
            guard ofSession else { return try AgentInput.submission(JSONValue(Array(json.utf8))).spec.requestTimeout }
            var session = TransferSession()
            try AgentInput.change(JSONValue(Array("{\"requestTimeout\":\(timeout)}".utf8)))(&session)
            return session.requestTimeout
        }
        #expect(try read("0.001") == 1 && read("31622400") == 31_622_400_000)
        for timeout in ["0", "-1", "0.0001", "31622400.001", "\"1\""] {
            let error = #expect(throws: APIError.self) { try read(timeout) }
            #expect(error?.message.contains("at most 31622400, with") == true, "\(timeout)")
        }
    }

    @Test("A SHA-256 of digits outside ASCII is refused")
    func digits() throws {
        let sum = String(repeating: "\u{FF11}", count: 21) + "1"
        let body = Array(#"{"kind":"download","url":"http://h/","sha256":"\#(sum)"}"#.utf8)
        let error = #expect(throws: APIError.self) { try AgentInput.submission(JSONValue(body)) }
        #expect(sum.utf8.count == 64 && error?.message.contains("64 hexadecimal digits") == true)
    }

    @Test(
        "Only the gateway's own refusals say that a device is not registered",
        arguments: [
            (200, #"{"appState":"forceQuit"}"#, true), (200, #"{"appState":"active"}"#, false),
            (404, #"{"reason":"UnknownDevice"}"#, false), (410, #"{"reason":"Unregistered"}"#, false),
            (404, #"{"reason":"BadPath"}"#, nil), (404, "not here", nil), (410, "", nil), (200, "{}", nil),
            (401, #"{"reason":"InvalidToken"}"#, nil), (503, "", nil),
        ] as [(Int, String, Bool?)]
    )
    func forceQuit(_ status: Int, _ body: String, _ isForceQuit: Bool?) {
        var response = HTTPResponse(status: status, headers: [])
        response.body = Array(body.utf8)
        #expect((try? response.isForceQuit.get()) == isForceQuit)
    }

    @Test(
        "How a gateway's answer is interpreted",
        arguments: [
            (202, "", OutboxEntry.Outcome.delivered), (404, "UnknownDevice", .refused("")),
            (410, "Unregistered", .refused("")), (409, "TooManySessions", .retry("")), (503, "Shutdown", .retry("")),
            (429, "", .retry("")), (401, "", .retry("")), (400, "BadTask", .refused("")), (404, "", .retry("")),
            (301, "", .retry("")),
        ]
    )
    func outbox(_ status: Int, _ reason: String, _ expected: OutboxEntry.Outcome) {
        switch (OutboxEntry.outcome(of: status, reason: reason), expected) {
        case (.delivered, .delivered): ()
        case (.retry(let words), .retry), (.refused(let words), .refused):
            #expect(words.contains("\(status)") && (reason.isEmpty || words.contains(reason)))
        case (let found, _): Issue.record("\(status) \(reason) is \(found)")
        }
    }
}
