import Testing

/// Each rule gets a text that breaks it, and one that only seems to break it.
@Suite("The tidy rules find what they look for", .timeLimit(.minutes(15)))
struct RuleTests {
    @Test("A banned word is found where its rule holds", arguments: BannedWords.all.map(\.word))
    func bannedWord(word: String) throws {
        let ban = try #require(BannedWords.all.first { $0.word == word })
        let path =
            switch ban.scope {
            case .tests: "Tests/SampleTests/Sample.swift"
            case .pure: "Sources/Core/Policy/Sample.swift"
            case .sources, .everywhere: "Sources/Sample/Sample.swift"
            }
        let line = "let x = \(word) 1"
        let found = BannedWords.violations(in: SourceText(path: path, text: "let y = 1\n\(line)\n"))
        let longer = BannedWords.violations(in: SourceText(path: path, text: "let x = Push\(word) 1"))
        #expect(!ban.isSuffix || !longer.isEmpty)
        #expect(found.contains { $0.line == 2 && $0.message.contains("`\(word)`") })

        let harmless = "let text = \"\(word)\"  // \(word)\n"
        let kept = BannedWords.violations(in: SourceText(path: path, text: harmless))
        #expect(kept.isEmpty == !ban.includesComments)
    }

    @Test(
        "A banned word inside a longer one is not banned",
        arguments: ["fingerprint(x)", "x.mapAsync()", "trail!", "sleeper(x)"]
    )
    func longerWord(code: String) {
        #expect(BannedWords.violations(in: SourceText(path: "Sources/Core/Policy/A.swift", text: code)).isEmpty)
    }

    @Test("Code that has one home may appear only there", arguments: OneWay.all.map(\.name))
    func oneWay(name: String) throws {
        let way = try #require(OneWay.all.first { $0.name == name })
        for word in way.words {
            let code = word.hasSuffix("_") ? "\(word)more" : word
            let path = "Sources/Server/Sample/Sample.swift"
            let found = OneWay.violations(in: SourceText(path: path, text: "let y = 1\nlet x = \(code) 1\n"))
            #expect(found.contains { $0.line == 2 && $0.message == "no `\(word)`: \(way.remedy)" })
            for home in way.homes {
                let text = SourceText(path: "Sources/Server/\(home)", text: "let x = \(code) 1\n")
                #expect(!OneWay.violations(in: text).contains { $0.message.hasSuffix(way.remedy) })
            }
            let harmless = SourceText(path: path, text: "let text = \"\(code)\"  // \(code)\n")
            #expect(OneWay.violations(in: harmless).isEmpty)
        }
    }

    @Test("A home that no longer contains its code is reported")
    func emptyHome() {
        let homes = Set(OneWay.all.flatMap { way in way.homes.map { "\($0): \(way.name)" } })
        let lock = SourceText(path: "Sources/Server/Platform/Monitor.swift", text: "pthread_mutex_lock(x)\n")
        #expect(Set(OneWay.unneeded(for: [lock])) == homes.subtracting(["Platform/Monitor.swift: locks"]))
    }

    @Test(
        "A comment that opens on a pronoun is found; a pronoun further on is not",
        arguments: [
            ("/// It counts.\nlet a = 1\n", [1]), ("let a = 1\n    /// Its name.\n    let b = 1\n", [2]),
            ("/// Those\n/// of the other one.\nlet a = 1\n", [1]), ("/// They.\n", [1]),
            ("/// The same, but later.\n", [1]), ("/// The same bytes.\n", []),
            ("/// The count.\n///\n/// It counts.\nlet a = 1\n", []), ("/// Items.\nlet a = 1\n", []),
            ("// It counts.\nlet a = 1\n", []), ("let text = \"/// It\"\n", []),
        ] as [(String, [Int])]
    )
    func openingWord(text: String, lines: [Int]) {
        let found = DocComments.violations(in: SourceText(path: "Tests/A/A.swift", text: text))
        #expect(found.map(\.line) == lines)
    }

    @Test(
        "A list of parameters that differs from the declaration is found",
        arguments: [
            ("/// - Parameter a: one.\nfunc f(_ a: Int) {}\n", true),
            ("/// - Parameter b: one.\nfunc f(b a: Int) {}\n", false),
            (
                "/// - Parameters:\n///   - a: one.\n///   - b: two.\ninit?(a: [Int: (Int, Int)], b: () -> Int) {}\n",
                true
            ),
            ("/// - Parameter a: one.\n@inlinable\nfunc f<T>(\n    a: T,\n    b: Int = g(1, 2)\n) {}\n", false),
            ("/// - `a`: one.\nfunc f(a: Int, b: Int) {}\n", true), ("/// - Parameter a: one.\nlet b = 1\n", false),
        ] as [(String, Bool)]
    )
    func listedParameters(text: String, isRight: Bool) {
        #expect(DocComments.violations(in: SourceText(path: "Sources/A/A.swift", text: text)).isEmpty == isRight)
    }

    @Test("Every way to sleep is found", arguments: ["Task.", "Thread.", "u", "Glibc.", "await Task.", ""])
    func pauses(owner: String) {
        let code = "\(owner)\("sleep")(1)"
        #expect(BannedWords.violations(in: SourceText(path: "Tests/A/A.swift", text: code)).count == 1)
    }

    @Test("Only the named modules import Foundation and the C library, and one file each imports another C library")
    func imports() {
        let found = ModuleImports.violations(in: [
            SourceText(path: "Sources/Core/Policy/Launch/A.swift", text: "import Foundation\n"),
            SourceText(path: "Sources/Server/HTTPTransport/A.swift", text: "import Glibc\nimport Policy\n"),
            SourceText(path: "Sources/Core/Engine/Devices/A.swift", text: "import Glibc\n// import Foundation"),
            SourceText(path: "Tests/Core/DeviceEngineTests/A.swift", text: "import Foundation\n"),
            SourceText(path: "Sources/Server/HTTPTransport/B.swift", text: "internal import CNghttp2\n"),
            SourceText(path: "Sources/Server/HTTPTransport/C.swift", text: "import CNghttp2\nimport COpenSSL\n"),
        ])
        let files = ["Core/Policy/Launch/A.swift", "Core/Engine/Devices/A.swift", "Server/HTTPTransport/C.swift"]
        #expect(found.map { "\($0.path):\($0.line)" } == files.map { "Sources/\($0):1" })
    }

    @Test("A type from a folder that the order lists later is found, at the line that uses it")
    func folderLayers() {
        let files = [
            SourceText(path: "Sources/Server/Sample/Root.swift", text: "package enum Root {}\n"),
            SourceText(path: "Sources/Server/Sample/One/A.swift", text: "struct A {\n    var b: [B] = []\n}\n"),
            SourceText(path: "Sources/Server/Sample/Two/B.swift", text: "// A\nstruct B {}\nfinal class C {}\n"),
            SourceText(path: "Sources/Server/Sample/Three/D.swift", text: "let c = C(\"A\")\nlet r = Root.self\n"),
        ]
        let order = ["Sample": [".", "Two", "One", "Three"]]
        #expect(FolderLayers.violations(in: files, order: order).isEmpty)
        let reversed = FolderLayers.violations(in: files, order: ["Sample": ["Three", "One", "Two", "."]])
        let places = ["\(files[1].path):2", "\(files[3].path):1", "\(files[3].path):2"]
        #expect(reversed.map { "\($0.path):\($0.line)" } == places)

        let back = SourceText(path: "Sources/Server/Sample/Two/E.swift", text: "func e() {\n    _ = A(b: [])\n}\n")
        let found = FolderLayers.violations(in: files + [back], order: order)
        #expect(found.map { "\($0.path):\($0.line)" } == ["\(back.path):2"], "in a cycle, the upward reference")
        let root = SourceText(path: "Sources/Server/Sample/Root+A.swift", text: "extension Root { typealias T = A }\n")
        #expect(FolderLayers.violations(in: files + [root], order: order).map(\.path) == [root.path])
    }

    @Test("A folder missing from the order is found, also a nested one, and so is a name without a folder")
    func folderNames() {
        let paths = [
            "Sources/Server/Sample/Root.swift", "Sources/Server/Sample/One/A.swift",
            "Sources/Server/Sample/One/Two/B.swift", "Sources/Server/Sample/Sample.docc/Sample.md",
            "Sources/Server/Sample/Texts/a.json", "Sources/Core/Flat/A.swift", "Tests/Core/FlatTests/Some/A.swift",
        ]
        let order = ["Sample": [".", "One", "One/Two", "Texts"]]
        #expect(FolderLayers.unexpected(in: paths, order: order).isEmpty)
        let found = FolderLayers.unexpected(in: paths, order: ["Sample": [".", "One", "Three"]])
        #expect(found == ["Sample/One/Two", "Sample/Texts", "Sample/Three"])
        #expect(FolderLayers.unexpected(in: paths, order: [:]).count == 4)
    }

    @Test("Unsafe code outside its homes is found, and so is a home without any")
    func unsafeCode() {
        let files = [
            SourceText(path: "Sources/Server/A/A.swift", text: "import B\n\nlet a = unsafe b()\n"),
            SourceText(path: "Sources/Server/A/B.swift", text: "internal import CThreads\nlet a = unsafe b()\n"),
            SourceText(path: "Sources/Server/A/C.swift", text: "nonisolated(unsafe) var a = 1\n"),
            SourceText(path: "Sources/Server/A/D.swift", text: "let unsafely = \"unsafe\"  // unsafe\n"),
            SourceText(path: "Tests/Server/ATests/A.swift", text: "let a = unsafe b()\n"),
        ]
        func found(_ places: [String]) -> [String] {
            let homes = places.map { UnsafeCode.Home(place: $0, reason: "a sample") }
            return UnsafeCode.violations(in: files, homes: homes).map { "\($0.path):\($0.line)" }
                + UnsafeCode.unneeded(for: files, homes: homes)
        }
        #expect(found([]) == ["Sources/Server/A/A.swift:3", "Sources/Server/A/C.swift:1"])
        #expect(found(["A/A.swift"]) == ["Sources/Server/A/C.swift:1"])
        #expect(found(["A"]).isEmpty)
        #expect(found(["A/A.swift", "A/B.swift", "A/C.swift", "A/D.swift", "C"]) == ["A/B.swift", "A/D.swift", "C"])
    }

    @Test(
        "The imported module is read from every form of import",
        arguments: [
            ("import Bytes", "Bytes"), ("@preconcurrency package import Foundation", "Foundation"),
            ("import struct Foundation.Data", "Foundation"), ("let x = 1 // import Bytes", nil), ("important()", nil),
        ] as [(String, String?)]
    )
    func importForms(line: String, module: String?) {
        #expect(ModuleImports.importedModule(SourceText(path: "", text: line).code[0]) == module)
    }

    @Test("Files and lines are measured")
    func fileAndLine() {
        let long = String(repeating: "let x = 1\n", count: 601)
        #expect(Lengths.violations(in: SourceText(path: "Sources/A/A.swift", text: long)).count == 1)
        let wide = String(repeating: "x", count: 120)
        #expect(Lengths.violations(in: SourceText(path: "Sources/A/A.swift", text: wide)).isEmpty)
        #expect(Lengths.violations(in: SourceText(path: "Sources/A/A.swift", text: wide + "x\n")).count == 1)
    }

    @Test("A function is measured from its declaration to its closing brace, despite braces in strings and comments")
    func functions() {
        let text = #"""
            struct A {
                init(x: [Int] = { [1] }()) {
                    self.y = "}"  // }
                }
                package static func f(
                    a: Int
                ) -> Int {
                    let text = "\(a) { \"{\" "
                    return a { $0 }
                }
            }
            protocol P {
                func requirement() -> Int
                init()
            }
            """#
        let functions = Lengths.functions(in: SourceText(path: "", text: text))
        #expect(functions == [.init(firstLine: 2, lineCount: 3), .init(firstLine: 5, lineCount: 6)])

        let body = String(repeating: "    x()\n", count: 69)
        let limit = SourceText(path: "Sources/A/A.swift", text: "func f() {\n\(body.dropLast(8))}\n")
        #expect(Lengths.violations(in: limit).isEmpty)
        let over = SourceText(path: "Sources/A/A.swift", text: "func f() {\n\(body)}\n")
        #expect(Lengths.violations(in: over).count == 1)
    }

    @Test("Comments and strings are blanked, lines stay")
    func blanking() {
        let text = "a /* b\n/* c */ d */ e // f\nlet g = #\"h\"i\"# + \"\"\"\n  j { \"k\"\n  \"\"\"\nl\n"
        let code = SourceText(path: "", text: text).code.map { $0.split(separator: " ").joined(separator: " ") }
        #expect(code == ["a", "e", "let g = #\" \"# + \"\"\"", "", "\"\"\"", "l"])
    }

    @Test("An unknown or missing entry at the top level is reported")
    func layout() {
        #expect(Layout.unexpected(in: Layout.topLevel).isEmpty)
        #expect(Layout.unexpected(in: Layout.topLevel.dropLast() + ["notes.txt"]) == ["deploy", "notes.txt"])
    }

    @Test("The first line of a private key is found")
    func privateKey() {
        let marker = "-----BEGIN EC " + "PRIVATE KEY-----"
        #expect(Layout.privateKeys(path: "a.pem", text: "x\n\(marker)\n").map(\.line) == [2])
        #expect(Layout.privateKeys(path: "a.swift", text: "let key = \"\(marker)\"\n").map(\.line) == [1])
        #expect(Layout.privateKeys(path: "a.pem", text: "-----BEGIN CERTIFICATE-----\n").isEmpty)
    }

    @Test("A wording that newcomers stumble over is found in a page, a comment and a text, and plain English is not")
    func wording() {
        let code = """
            #Whether it goes_on `in_force`.
            #It is_told; it is no longer, is_no number.
            let text = "hangs_on \\(name) or" // As_it_is.
            let all = [is, no, beside]
            """.replacing("#", with: "/// ").replacing("_", with: " ")
        let lines = Wording.lines(in: SourceText(path: "Sources/A/A.swift", text: code))
        #expect(lines.map(\.number) == [1, 2, 3, 3] && lines.map(\.kind) == [.comment, .comment, .string, .string])
        #expect(lines.map { Wording.hints(in: $0).count } == [2, 2, 1, 1])
        let text = "It goes_on.\n```\nhangs_on\n```\nWhat_is_left?\n".replacing("_", with: " ")
        let page = Wording.lines(ofPage: text)
        #expect(page.flatMap(Wording.hints).map { $0.prefix(8) } == ["\"goes on", "\"what is"])
    }

    @Test("A dead link is found, relative to its page; a live one and a foreign one are not")
    func link() {
        let text = "[a](a.md) [b](../README.md#top)\n[c](https://example.com) [d](#d) [e](gone.md)\n"
        let dead = Layout.deadLinks(path: "certs/README.md", text: text) { ["certs/a.md", "README.md"].contains($0) }
        #expect(dead.map(\.line) == [2])
    }

    @Test("A library module without its catalog is found, and a page that lacks a part or hides an article")
    func catalogs() {
        let texts = [
            "Sources/Bare/Bare.swift": "struct A {}\n",
            "Sources/program/Main.swift": "@main\nstruct Main {}\n",
            "Sources/Good/Good.swift": "struct A {} // @main\n",
            "Sources/Good/Good.docc/Good.md": "# ``Good``\n\nIs good.\n\n## Overview\n\n## Topics\n\n- <doc:Article>\n",
            "Sources/Good/Good.docc/Article.md": "# An article\n",
            "Sources/Poor/Poor.swift": "struct A {}\n",
            "Sources/Poor/Poor.docc/Poor.md": "# Poor\n## Overview\n",
            "Sources/Poor/Poor.docc/Article.md": "# An article\n",
            "Sources/CShim/shim.h": "",
        ]
        let found = Catalogs.violations(in: texts.keys.sorted()) { texts[$0, default: ""] }
        #expect(
            found.map(\.description) == [
                "Sources/Bare/Bare.docc/Bare.md:1: missing; say in it what Bare is for, and how it works",
                "Sources/Poor/Poor.docc/Poor.md:1: it lacks the title \"# ``Poor``\"",
                "Sources/Poor/Poor.docc/Poor.md:1: it lacks a sentence below the title",
                "Sources/Poor/Poor.docc/Poor.md:1: it lacks ## Topics",
                "Sources/Poor/Poor.docc/Poor.md:1: it lacks the topic <doc:Article>",
            ]
        )
    }

    @Test("A missing file or function on the push path page is found, and so is a wrong figure")
    func pushPath() {
        let page = """
            ## In
            | `A/A.swift` | `run` | runs |
            | · `A/Gone.swift` | `look` | looks |
            | `B/B.swift` | `init` | is made |
            ## Figures
            | to the 200 | 2 | 2 | 3 | 2 | 1 |
            | to the 200 and the wake | 2 | 2 | 3 | 2 | 1 |
            | to the answered result | 2 | 2 | 3 | 3 | 1 |
            """
        let texts = [
            "Sources/Core/A/A.swift": "func runs() {}\n// func run() {}\n",
            "Sources/Core/B/B.swift": "struct B {\n    init() {}\n}\n",
            "Tests/Core/A/Gone.swift": "func look() {}\n",
        ]
        let found = PushPath.violations(in: page, files: texts.keys.sorted()) { texts[$0, default: ""] }
        #expect(found.map(\.line) == [2, 3, 1])
        #expect(
            found.map(\.message) == [
                "A/A.swift declares no run; follow the way anew",
                "A/Gone.swift does not exist; follow the way anew",
                "its figures should be \"| to the answered result | 2 | 2 | 3 | 2 |\"",
            ]
        )
    }

    @Test("An unlisted lock, a removed one, and one that is taken against the order are found")
    func locks() {
        let page = """
            | lock | guards | under it |
            |---|---|---|
            | `A/A.swift` `queue` | a | takes `A/A.swift` `value`, `B/B.swift` `monitor` |
            | `A/A.swift` `value` | a | takes `A/A.swift` `queue`, `B/B.swift` `other` |
            | `B/B.swift` `monitor` | b | nothing else |
            | `B/B.swift` `gone` | b | nothing else |
            | `A/A.swift` `value` | a | nothing else |

            | file | function | what ends |
            |---|---|---|
            | `A/A.swift` | `stop` | a |
            """
        let files = [
            SourceText(
                path: "Sources/Core/A/A.swift",
                text: """
                    let queue = DispatchQueue(label: "a")
                    private let value: Mutex<Int>
                    init() { self.value = Mutex(1) }
                    func stop() { let begun = Latch() }
                    static let names = ["Mutex"]  // let mutex = Mutex(1)
                    """
            ),
            SourceText(path: "Sources/Core/B/B.swift", text: "let monitor = Monitor()\nlet all: [Mutex<Int>]\n"),
            SourceText(path: "Tests/Core/B/B.swift", text: "let other = Mutex(1)\n"),
        ]
        let found = Locks.violations(in: page, files: files)
        #expect(
            found.map { "\($0.line): \($0.message)" } == [
                "1: `A/A.swift` `begun` is not listed; say what it guards and what is done under it",
                "4: `A/A.swift` `queue` does not stand below `A/A.swift` `value`, under which it is taken",
                "4: `B/B.swift` `other` does not stand below `A/A.swift` `value`, under which it is taken",
                "6: `B/B.swift` `gone` is not a lock, or is listed before",
                "7: `A/A.swift` `value` is not a lock, or is listed before",
            ]
        )
    }

    @Test("An exception covers only its own file and rule, and is reported when it is not needed")
    func exceptions() {
        let violation = Violation(path: "Sources/A/A.swift", line: 1, message: "601 lines; split it")
        let fitting = Exceptions.Exception(path: "Sources/A/A.swift", rule: "lines; split", reason: "a sample")
        let other = Exceptions.Exception(path: "Sources/B/B.swift", rule: "lines; split", reason: "a sample")
        #expect(Exceptions.remaining([violation], exceptions: [fitting]).isEmpty)
        #expect(Exceptions.remaining([violation], exceptions: [other]) == [violation])
        #expect(
            Exceptions.unused(for: [violation], exceptions: [fitting, other]) == ["Sources/B/B.swift: lines; split"]
        )
    }

    @Test("A limit that no test names is found, and so is a fixed one without a line")
    func bounds() throws {
        let path = try #require(Bounds.settable.first)
        let limits = SourceText(path: path, text: "struct L {\n    package var queueMax = 3\n}\n")
        let test = SourceText(path: "Tests/SampleTests/Sample.swift", text: "limits.queueMax = 1\n")
        let other = SourceText(path: "Tests/SampleTests/Sample.swift", text: "limits.queueMaxima = 1\n// queueMax\n")
        #expect(Bounds.violations(in: [limits, test]).isEmpty)
        #expect(Bounds.violations(in: [limits, other]).map(\.line) == [2])
        let fixed = SourceText(
            path: "Sources/Server/HTTPTransport/Sample/Sample.swift",
            text: "static let triesMax = 3\n"
        )
        #expect(Bounds.violations(in: [fixed]).map(\.message) == ["Sample triesMax has no line in the table of bounds"])
        let known = SourceText(
            path: "Sources/Server/HTTPTransport/Address/ListenAddress.swift",
            text: "static let pathBytesMax = 3\n"
        )
        #expect(Bounds.violations(in: [known]).count == 1)
    }
}
