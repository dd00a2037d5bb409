/// The code with `unsafe`, where the compiler no longer proves memory safety.
///
/// The only file that imports a C module may use `unsafe`, because no other file calls that module. All other places
/// that may use it are listed here, each with its reason. The rest of the code uses memory, files and clocks through
/// types that cannot be misused.
enum UnsafeCode {
    struct Home {
        /// A module, a folder of it as `MODULE/FOLDER`, or one file of it as `MODULE/FILE.swift`.
        let place: String
        let reason: String
    }

    static let homes: [Home] = [
        Home(place: "Wire/Bytes", reason: "owns raw memory, and checks each access to it"),
        Home(place: "Platform", reason: "makes the system's calls"),
        Home(place: "Engine/DeviceTable.swift", reason: "holds rows that never move, a million of them"),
        Home(
            place: "Engine/DeviceRecord.swift",
            reason: "costs a pointer where an optional costs all its value does"
        ),
        Home(
            place: "Engine/PushContent.swift",
            reason: "keeps a push in one block, and the policy a number for it"
        ),
        Home(place: "HTTPTransport/FieldTables.swift", reason: "on a push's way: reads its tables without a check"),
        Home(place: "HTTPTransport/MemoryPool.swift", reason: "is the allocator of libnghttp2"),
        Home(place: "HTTPTransport/Request.swift", reason: "on a push's way: lends header fields, not copies"),
        Home(
            place: "HTTPTransport/StreamState.swift",
            reason: "on a push's way: memory of fields that is used again, and places that never move"
        ),
        Home(
            place: "Storage/PushIndex.swift",
            reason: "sorts lots of events in passes without a check an element"
        ),
        Home(
            place: "HTTPClient/HTTPTransfer.swift",
            reason: "takes what libcurl's callbacks hand over, and owns its handle of shared cookies"
        ),
        Home(place: "HTTPClient/HTTPURL.swift", reason: "reads addresses as the system's resolver does"),
        Home(place: "CommandLineTool/Terminal.swift", reason: "sets up the terminal"),
    ]

    static func violations(in files: [SourceText], homes: [Home] = Self.homes) -> [Violation] {
        let places = Set(homes.map(\.place))
        return files.filter { $0.isSource && !self.importsC($0) && places.isDisjoint(with: self.places(of: $0)) }
            .flatMap { file in
                self.lines(of: file).map { line in
                    Violation(
                        path: file.path,
                        line: line,
                        message: "no `unsafe`: use the views of Bytes and the files of Platform"
                    )
                }
            }
    }

    /// Returns the homes that have no unsafe code.
    static func unneeded(for files: [SourceText], homes: [Home] = Self.homes) -> [String] {
        let used = files.filter { $0.isSource && !self.importsC($0) && !self.lines(of: $0).isEmpty }
        return Set(homes.map(\.place)).subtracting(used.flatMap(self.places)).sorted()
    }

    private static func places(of file: SourceText) -> [String] {
        let parts = file.path.split(separator: "/").dropFirst(3)
        return [file.module] + Set([parts.first, parts.last]).map { "\(file.module)/\($0 ?? "")" }
    }

    private static func importsC(_ file: SourceText) -> Bool {
        file.code.contains { ModuleImports.importedModule($0).map(ModuleImports.isCModule) ?? false }
    }

    private static func lines(of file: SourceText) -> [Int] {
        zip(1..., file.code).filter { _, line in
            line.containsBytes(of: "unsafe") && BannedWords.contains("unsafe", in: line)
        }.map(\.0)
    }
}
