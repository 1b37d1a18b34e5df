package ports

import (
	"encoding/binary"
	"errors"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// maxReads is how often the table is read to get a version that did not change during the read.
const maxReads = 50

// readConsistent calls read until no program changed nftables during the call. Otherwise a result that
// takes several requests to the kernel could mix several states: a set with a port, and another
// from before the port.
func readConsistent(read func() (*Table, error)) (*Table, error) {
	c, err := netlink.Dial(unix.NETLINK_NETFILTER, nil)
	if err != nil {
		return nil, tableError(err)
	}
	defer func() { _ = c.Close() }()
	before, err := generation(c)
	if err != nil {
		return nil, tableError(err)
	}
	for try := 1; ; try++ {
		t, err := read()
		after, failed := generation(c)
		if failed != nil {
			return nil, tableError(failed)
		}
		if before == after || try == maxReads {
			return t, err
		}
		before = after
	}
}

// generation returns the number of the last nftables transaction in this network namespace
// (NFT_MSG_GETGEN, include/uapi/linux/netfilter/nf_tables.h).
func generation(c *netlink.Conn) (uint32, error) {
	answers, err := c.Execute(netlink.Message{
		Header: netlink.Header{Type: unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_GETGEN, Flags: netlink.Request},
		Data:   make([]byte, nfgenmsgLength), // no specific family
	})
	if err != nil {
		return 0, err
	}
	for _, a := range answers {
		if len(a.Data) < nfgenmsgLength {
			continue
		}
		attributes, err := netlink.NewAttributeDecoder(a.Data[nfgenmsgLength:])
		if err != nil {
			return 0, err
		}
		attributes.ByteOrder = binary.BigEndian
		for attributes.Next() {
			if attributes.Type() == unix.NFTA_GEN_ID {
				return attributes.Uint32(), nil
			}
		}
	}
	return 0, errors.New("the kernel did not report the generation of nftables")
}

// nfgenmsgLength is the length of the header before the attributes of an nftables message (struct
// nfgenmsg).
const nfgenmsgLength = 4
