package treesync

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"orrery/internal/strict/jsonlimit"
	"orrery/internal/tree"
)

// If a transfer was interrupted or its sender was killed, the receiver lists what it has, and the
// sender continues from there. The list has paths and the digests of the files' blocks, in whatever
// state they were left.

// A blockSum is the first half of the SHA-256 of a block.
type blockSum [16]byte

// sumBytes is the size of a block's number and digest.
const sumBytes = 8 + len(blockSum{})

// listLimit limits what a receiver may list, by what the sender has announced. A receiver that has more
// starts again from nothing.
type listLimit struct{ paths, blocks int64 }

func newListLimit(announced int64) listLimit {
	return listLimit{paths: announced/entryBytes*2 + 1<<16, blocks: announced/blockSize*2 + 1<<16}
}

// count subtracts paths and blocks and reports whether they were within the limit.
func (k *listLimit) count(paths, blocks int64) bool {
	k.paths -= paths
	k.blocks -= blocks
	return k.paths >= 0 && k.blocks >= 0
}

// trees returns the names of the trees that have been received.
func (r Receiver) trees(allowed func(tree string) bool) (names []string, err error) {
	root, err := open(filepath.Join(r.Dir, "trees"))
	if root == nil {
		return nil, err
	}
	defer root.Close() //nolint:errcheck // it was only read
	all, err := root.Names(".", maxTrees)
	if err != nil {
		return nil, err
	}
	for _, name := range all {
		if validTree(name) && allowed(name) {
			names = append(names, name)
			continue
		}
		below, err := root.Names(name, maxTrees)
		if err != nil {
			return nil, err
		}
		for _, inner := range below {
			if inner = path.Join(name, inner); validTree(inner) && allowed(inner) {
				names = append(names, inner)
			}
		}
	}
	return names, nil
}

// maxTrees is the maximum number of trees.
const maxTrees = 10_000

// receivedBytes returns how many bytes the received trees occupy on disk, or false if they exceed the
// limit of the list.
func (t *receivePass) receivedBytes(limit listLimit) (bytes int64, ok bool, err error) {
	names, err := t.to.trees(t.allowed)
	if err != nil {
		return 0, false, err
	}
	for _, name := range names {
		more, err := measure(context.Background(), t.to.Tree(name), func(st *unix.Stat_t) error {
			if !limit.count(1, min((st.Size+blockSize-1)/blockSize, st.Blocks)) {
				// no block has less data than the file system's unit of allocation
				return tree.ErrTooLarge
			}
			return nil
		})
		if errors.Is(err, tree.ErrTooLarge) {
			return 0, false, nil
		}
		if err != nil {
			return 0, false, err
		}
		bytes += more
	}
	return bytes, true, nil
}

// list sends the list of what has been received.
func (t *receivePass) list() error {
	names, err := t.to.trees(t.allowed)
	for _, name := range names {
		if err == nil {
			err = t.listTree(name)
		}
	}
	if err == nil {
		err = t.conn.frame(listEnd)
	}
	return err
}

func (t *receivePass) listTree(name string) error {
	root, err := tree.Open(t.to.Tree(name))
	if err != nil {
		return err
	}
	defer root.Close()
	if err := t.conn.frame(treeStart, []byte(name)); err != nil {
		return err
	}
	return root.Walk(context.Background(), tree.DefaultBounds, func(e *tree.Entry) error {
		if err := t.conn.writeJSON(hasPath, entry{Entry: Entry{Name: Name(e.Path), Mode: e.Stat.Mode}}); err != nil {
			return err
		}
		// patching it would change its other names as well
		if e.Stat.Mode&unix.S_IFMT != unix.S_IFREG || e.Stat.Nlink > 1 {
			return nil
		}
		return t.listSums(e)
	})
}

// listSums sends the digests of a file's blocks.
func (t *receivePass) listSums(e *tree.Entry) error {
	fd, st, err := tree.OpenEntry(e.Dir, e.Name)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	sums := []byte{}
	err = eachBlock(context.Background(), fd, st.Size, make([]byte, blockSize),
		func(n int64, _ []byte, sum blockSum) error {
			if sums = append(append(sums, encodeOffset(n)...), sum[:]...); len(sums) < 1000*sumBytes {
				return nil
			}
			err := t.conn.frame(blockSums, sums)
			sums = sums[:0]
			return err
		})
	if err == nil { // send an empty list as well: it means that the file can be patched
		err = t.conn.frame(blockSums, sums)
	}
	return err
}

// eachBlock calls do for each block of a file that is not a hole.
func eachBlock(ctx context.Context, fd int, size int64, buffer []byte,
	do func(n int64, b []byte, sum blockSum) error) error {
	next := int64(0) // the first block that has not been read
	return tree.EachData(fd, size, func(from, to int64) error {
		for n := max(next, from/blockSize); n*blockSize < to; n++ {
			next = n + 1
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			b := buffer[:min(blockSize, size-n*blockSize)]
			got, err := tree.ReadAt(fd, b, n*blockSize)
			if err != nil {
				return err
			}
			clear(b[got:]) // the file was truncated during the pass and will be sent again
			if isZero(b) {
				continue
			}
			sum := sha256.Sum256(b)
			if err := do(n, b, blockSum(sum[:16])); err != nil {
				return err
			}
		}
		return nil
	})
}

// resume reads the list of what the receiver has. Every path counts as changed, but blocks with the
// same digest are not sent again.
func (r *pass) resume(announced int64) error {
	limit := newListLimit(announced)
	limit.paths += 1 << 10 // the trees themselves
	var top, last *fileState
	for {
		kind, b, err := r.conn.next()
		if err != nil {
			return err
		}
		switch {
		case kind == listEnd && len(b) == 0:
			return nil
		case kind == treeStart && validTree(string(b)) && limit.count(1, 0):
			top, last = &fileState{inside: map[string]*fileState{}}, nil
			r.trees[string(b)] = top
		case kind == hasPath && top != nil:
			var e entry
			if jsonlimit.Unmarshal(b, &e) != nil || e.Check() != nil || !limit.count(1, 0) {
				return errProtocol
			}
			if last = top.list(&e.Entry); last == nil {
				return errProtocol
			}
		case kind == blockSums && last != nil && len(b)%sumBytes == 0 && limit.count(0, int64(len(b)/sumBytes)):
			last.listSums(b)
		default:
			return errProtocol
		}
	}
}

// list adds a path that the receiver has. It returns nil if the parent directory was not listed
// before.
func (k *fileState) list(e *Entry) *fileState {
	made := &fileState{state: state{mode: e.Kind()}}
	if e.IsDir() {
		made.inside = map[string]*fileState{}
	}
	if e.Name == "." {
		k.state = made.state
		return k
	}
	if above := path.Dir(string(e.Name)); above != "." {
		for dir := range strings.SplitSeq(above, "/") {
			if k = k.inside[dir]; k == nil {
				return nil
			}
		}
	}
	if k.inside == nil {
		return nil
	}
	k.inside[path.Base(string(e.Name))] = made
	return made
}

// listSums adds digests of blocks of a file that the receiver has.
func (k *fileState) listSums(b []byte) {
	if k.sums == nil {
		k.sums = map[int64]blockSum{}
	}
	k.kept = true
	for ; len(b) > 0; b = b[sumBytes:] {
		k.sums[int64(binary.BigEndian.Uint64(b))] = blockSum(b[8:]) //nolint:gosec // one that no file has is never found
	}
}
