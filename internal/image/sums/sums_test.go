package sums

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// file creates a file of a given size that has holes everywhere except in data.
func file(t testing.TB, size int64, data map[int64][]byte) *os.File {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "f"))
	must(t, err)
	t.Cleanup(func() { f.Close() })
	must(t, f.Truncate(size))
	for at, content := range data {
		_, err := f.WriteAt(content, at)
		must(t, err)
	}
	return f
}

func sha(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// TestOf: the digest of a file is its SHA-256, and so is that of a piece, wherever there are holes.
func TestOf(t *testing.T) {
	for name, f := range map[string]*os.File{
		"empty":           file(t, 0, nil),
		"small":           file(t, 4, map[int64][]byte{0: []byte("text")}),
		"a hole":          file(t, 9<<20+7, nil),
		"data at the end": file(t, 9<<20+7, map[int64][]byte{9<<20 + 3: []byte("text")}),
		"holes between": file(t, 33<<20+7, map[int64][]byte{
			5 << 20: []byte("text"), 8<<20 - 2: []byte("across two"), 12 << 20: bytes.Repeat([]byte("x"), 5<<20),
			25 << 20: make([]byte, 1<<20),
		}),
		"no hole": file(t, 6<<20, map[int64][]byte{0: bytes.Repeat([]byte("abc"), 2<<20)}),
	} {
		text, err := os.ReadFile(f.Name())
		must(t, err)
		read := int64(0)
		digest, err := Digest(t.Context(), f, func(n int64) { read += n })
		if err != nil || digest != sha(text) || read != int64(len(text)) {
			t.Errorf("%s: %s of %d bytes, %v", name, digest, read, err)
		}
		var want []string
		for piece := range slices.Chunk(text, PieceSize) {
			want = append(want, sha(piece))
		}
		if pieces, err := PieceDigests(t.Context(), f); err != nil || !slices.Equal(pieces, want) {
			t.Errorf("%s: pieces %v, not %v, %v", name, pieces, want, err)
		}
	}
}

// TestLarge: holes of a large file take no time to hash, and its digest depends only on its
// content.
func TestLarge(t *testing.T) {
	const size = 10<<40 + 512
	begun := time.Now()
	digest := func(size int64, data map[int64][]byte) string {
		sum, err := Digest(t.Context(), file(t, size, data), nil)
		must(t, err)
		return sum
	}
	text := map[int64][]byte{3 << 40: []byte("text")}
	original := digest(size, text)
	if other := digest(size, map[int64][]byte{3 << 40: []byte("text"), 5<<40 - 1<<20: make([]byte, 3<<20),
		size - 2: make([]byte, 2)}); other != original {
		t.Error("a copy with fewer holes has another digest")
	}
	others := []string{original, digest(size, nil), digest(size+1, text),
		digest(size, map[int64][]byte{3<<40 + 1: []byte("text")}), digest(1<<40, nil)}
	slices.Sort(others)
	if len(slices.Compact(others)) != 5 || !slices.Contains(others, original) {
		t.Errorf("other files have the same digest: %v", others)
	}
	if took := time.Since(begun); took > time.Minute {
		t.Errorf("it took %s", took)
	}
}

// TestEnds: hashing stops when its context ends.
func TestEnds(t *testing.T) {
	f := file(t, MinPiecewise-1, nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for name, sum := range map[string]func(context.Context, *os.File, func(int64)) (string, error){
		"of": Digest, "plain": Plain} {
		hashed := int64(0)
		_, err := sum(ctx, f, func(n int64) {
			if hashed += n; hashed > 8<<20 {
				cancel()
			}
		})
		if !errors.Is(err, context.Canceled) || hashed > 9<<20 {
			t.Errorf("%s: %v after %d bytes", name, err, hashed)
		}
	}
	if _, err := PieceDigests(ctx,
		file(t, 16<<20, map[int64][]byte{0: bytes.Repeat([]byte("x"), 16<<20)})); !errors.Is(err,
		context.Canceled) {
		t.Errorf("pieces: %v", err)
	}
}

// TestShorter: a file that is truncated while it is read has no digest.
func TestShorter(t *testing.T) {
	f := file(t, 4<<20, map[int64][]byte{0: bytes.Repeat([]byte("x"), 4<<20)})
	if _, err := Digest(t.Context(), f, func(int64) { must(t, f.Truncate(100)) }); err == nil {
		t.Error("it has one")
	}
}
