package ports

import (
	"errors"
	"slices"

	"github.com/google/nftables"
	"github.com/google/nftables/userdata"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// AddPorts adds ports with their identities to the table, and checks that the free ports are not in it.
// It reads only the elements of these ports, so its cost does not depend on the number of ports on
// the host. It returns false without a change if this is not sufficient: the table is incomplete,
// or has other identities for one of the ports.
func AddPorts(some map[string]Identity, free []string) (bool, error) {
	c, err := nftables.New(nftables.AsLasting(), nftables.WithSockOptions(setSendBuffer))
	if err != nil {
		return false, tableError(err)
	}
	defer func() { _ = c.CloseLasting() }()
	if !slices.Equal(comments(c), allComments()) {
		return false, nil
	}
	if ok, err := hasNoConflicts(some, free); !ok || err != nil {
		return false, err
	}
	g := &Table{Held: some}
	keys := g.keys()
	for _, s := range sets {
		if err := applyDiff(s.kernelSet(), keys[s.name], nil, c.SetAddElements); err != nil {
			return false, err
		}
	}
	err = c.Flush()
	if errors.Is(err, unix.ENOENT) { // another program has just removed the table
		return false, nil
	}
	if err != nil {
		return false, tableError(err)
	}
	return true, nil
}

// hasNoConflicts reports whether the table has no conflicting entries for these ports.
func hasNoConflicts(some map[string]Identity, free []string) (bool, error) {
	c, err := netlink.Dial(unix.NETLINK_NETFILTER, nil)
	if err != nil {
		return false, tableError(err)
	}
	defer func() { _ = c.Close() }()
	for port, as := range some {
		if comment, ok, err := heldComment(c, port); err != nil || ok && comment != as.comment(port) {
			return false, err
		}
	}
	for _, port := range free {
		if _, ok, err := heldComment(c, port); err != nil || ok {
			return false, err
		}
	}
	return true, nil
}

// heldComment returns the comment of a port's element in the set held, or false if the port is not held
// (NFT_MSG_GETSETELEM, include/uapi/linux/netfilter/nf_tables.h).
func heldComment(c *netlink.Conn, port string) (comment string, ok bool, err error) {
	e := netlink.NewAttributeEncoder()
	e.String(unix.NFTA_SET_ELEM_LIST_TABLE, table.Name)
	e.String(unix.NFTA_SET_ELEM_LIST_SET, held.name)
	e.Nested(unix.NFTA_SET_ELEM_LIST_ELEMENTS, func(list *netlink.AttributeEncoder) error {
		list.Nested(unix.NFTA_LIST_ELEM, func(one *netlink.AttributeEncoder) error {
			one.Nested(unix.NFTA_SET_ELEM_KEY, func(key *netlink.AttributeEncoder) error {
				key.Bytes(unix.NFTA_DATA_VALUE, []byte(portKey(port)))
				return nil
			})
			return nil
		})
		return nil
	})
	body, err := e.Encode()
	if err != nil {
		return "", false, err
	}
	answers, err := c.Execute(netlink.Message{
		Header: netlink.Header{Type: unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_GETSETELEM, Flags: netlink.Request},
		Data:   append([]byte{byte(table.Family), unix.NFNETLINK_V0, 0, 0}, body...),
	})
	if errors.Is(err, unix.ENOENT) {
		return "", false, nil
	}
	if err != nil {
		return "", false, tableError(err)
	}
	for _, a := range answers {
		comment, err = commentIn(a.Data)
	}
	return comment, err == nil, err
}

// commentIn returns the comment of the only element in an answer.
func commentIn(answer []byte) (comment string, err error) {
	attributes := answer[min(nfgenmsgLength, len(answer)):]
	for _, within := range []uint16{unix.NFTA_SET_ELEM_LIST_ELEMENTS, unix.NFTA_LIST_ELEM, unix.NFTA_SET_ELEM_USERDATA} {
		d, err := netlink.NewAttributeDecoder(attributes)
		if err != nil {
			return "", err
		}
		attributes = nil
		for d.Next() {
			if d.Type() == within {
				attributes = d.Bytes()
			}
		}
		if err := d.Err(); err != nil {
			return "", err
		}
	}
	comment, _ = userdata.GetString(attributes, userdata.NFTNL_UDATA_SET_ELEM_COMMENT)
	return comment, nil
}
