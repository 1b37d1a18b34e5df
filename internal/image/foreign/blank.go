package foreign

import (
	"encoding/binary"
	"io"
)

// clusterBits is the cluster size of images that CreateEmpty creates: 64 KiB, as qemu-img uses.
const clusterBits = 16

// CreateEmpty writes an empty qcow2 image of the given size. It names no backing file: QEMU gets the
// backing file as an open descriptor.
func CreateEmpty(to io.WriterAt, size int64) error {
	const cluster = 1 << clusterBits
	covers := int64(cluster / 8 * cluster)
	entries := (size + covers - 1) / covers
	tables := (entries*8 + cluster - 1) / cluster
	h := header{
		Version: 3, ClusterBits: clusterBits, Size: uint64(size), L1Size: uint32(entries), L1Offset: 3 * cluster,
		RefcountOffset: cluster, RefcountClusters: 1, RefcountOrder: 4, Length: uint32(binary.Size(header{})),
	}
	copy(h.Magic[:], magic)
	head, err := binary.Append(nil, binary.BigEndian, h)
	if err != nil {
		return err
	}
	counts := make([]byte, 2*(3+tables)) // the header, the refcount table, the refcounts, the L1 table
	for i := range 3 + tables {
		binary.BigEndian.PutUint16(counts[2*i:], 1)
	}
	for _, piece := range []struct {
		bytes []byte
		at    int64
	}{
		{head, 0}, {binary.BigEndian.AppendUint64(nil, 2*cluster), cluster}, {counts, 2 * cluster},
		{[]byte{0}, (3+tables)*cluster - 1},
	} {
		if _, err := to.WriteAt(piece.bytes, piece.at); err != nil {
			return err
		}
	}
	return nil
}
