package backup

import (
	"crypto/sha256"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"orrery/internal/backup/vault"
)

// The helpers below know of the format only what docs/decisions/0012 says, so that a test notices
// when it changes.

// blockPath returns the path of a block in a repository, which is also its name in an archive.
func blockPath(d vault.Digest) string { return "blocks/" + d.String()[:2] + "/" + d.String() + ".zst" }

// blockWith returns the block that contains a piece.
func blockWith(t *testing.T, v vault.Vault, content []byte) vault.Digest {
	t.Helper()
	block, ok := vault.NewPieces(v).Block(sha256.Sum256(content))
	if !ok {
		t.Fatal("the vault lacks it")
	}
	return block
}

// blocksOfRepository returns the blocks for which there is a path with the name of a block.
func blocksOfRepository(t *testing.T, at string) (all []vault.Digest) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(at, "blocks/*/*.zst"))
	must(t, err)
	for _, path := range paths {
		var d vault.Digest
		must(t, d.UnmarshalText([]byte(filepath.Base(path)[:64])))
		all = append(all, d)
	}
	return all
}

// A note is a repository's record of the state of a block's file when it was last verified.
type note struct {
	Size, Inode, Changed, Read uint64
}

// changeNotes calls change for each of them, and stores the result.
func changeNotes(t *testing.T, at string, change func(block vault.Digest, n *note)) {
	t.Helper()
	path := filepath.Join(at, "index/read")
	text, err := os.ReadFile(path)
	must(t, err)
	const line = len(vault.Digest{}) + 4*8
	text = text[:len(text)-sha256.Size]
	for i := 0; i < len(text); i += line {
		var n note
		_, err := binary.Decode(text[i+len(vault.Digest{}):], binary.LittleEndian, &n)
		must(t, err)
		change(vault.Digest(text[i:]), &n)
		_, err = binary.Encode(text[i+len(vault.Digest{}):], binary.LittleEndian, &n)
		must(t, err)
	}
	sum := sha256.Sum256(text)
	must(t, os.WriteFile(path, append(text, sum[:]...), 0o600))
}
