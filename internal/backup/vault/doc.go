// Package vault stores backups as content named by its digest: in a directory that holds many (Repository) or
// in one file (Archive).
//
// # Format
//
// Files are cut into pieces of at most 1 MiB, named by their SHA-256. A Packer takes the pieces that the
// vault lacks and packs them into blocks of about 4 MiB. A block is a file with one zstd frame, behind a
// skippable frame that lists the digests and sizes of its pieces; it is named by the digest of the file. A
// Tree is a list of Entries (lines of JSON) that name pieces, and a Manifest names trees.
//
// A Repository keeps these as files that many backups share. An Archive is a plain tar archive of the same:
// "tar -xf FILE -C DIR" turns it into a directory, and "zstd -dc" reads a block. So everything can be
// extracted without Orrery. Every byte is verified: blocks and manifests are named by their digests, a header
// can be written in one way only, and padding is zero. The manifest is written last, so a backup that was cut
// short does not count. Decision 12 gives the reasons.
//
// # The life of a block
//
// A block is written, noted as whole, and reused by later backups, each of which verifies a sample of the
// blocks that were read longest ago (sound.go). A damaged block is condemned, its readable pieces are
// salvaged, and the next backup writes the rest again. Prune removes blocks that no manifest needs; it keeps
// a block while any of its pieces is needed.
//
// The author of a vault is not trusted: names, sizes and counts are checked before they are used (legal.go,
// bounded.go). Package backup decides what is stored and restored.
package vault
