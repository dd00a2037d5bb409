import TransferAgent

extension StateFiles {
    /// Looks at a file that was written, to the end.
    func finish(_ writing: Writing, bytes: Int64, sha256: String?) -> FileLook.Finish {
        let look = FileLook(writing, bytes: bytes, sha256: sha256, in: self)
        while true {
            if let finish = look.step() { return finish }
        }
    }

    /// Moves a file to its place, to the end.
    func take(_ name: String, to path: String, replaces: Bool) throws(TakeFault) {
        let move = FileMove(name, to: path, replaces: replaces, in: self)
        while try !move.step() {}
    }
}
