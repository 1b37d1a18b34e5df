package render

import (
	"cmp"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"orrery/internal/site"
	"orrery/internal/site/distro"
	"orrery/internal/text/shell"
)

// A healthWriter writes the health checks of a node as a script for bash. The node runs it itself, because the
// host may be cut off when it is needed.
type healthWriter struct {
	node *NodeView
	text strings.Builder
}

// role adds the checks of a role.
func (w *healthWriter) role(name string, checks []site.HealthCheck, env []string) {
	fmt.Fprintf(&w.text, "\n# role %s\nvars=(%s)\n", name, shell.Join(env))
	for i := range checks {
		h := &checks[i]
		fmt.Fprintf(&w.text, "check %s %s\n", seconds(h.Timeout), shell.Join(w.command(h)))
	}
}

// command returns the command of a check.
func (w *healthWriter) command(h *site.HealthCheck) []string {
	bash := func(script string, args ...string) []string {
		return append([]string{"bash", "-c", script, "check"}, args...)
	}
	switch h.Kind() {
	case "tcp":
		return bash(`exec 3<>"/dev/tcp/127.0.0.1/$1"`, fmt.Sprint(h.TCP))
	case "http":
		u, err := url.Parse(h.HTTP)
		if err != nil {
			return []string{"false"} // which package check has reported
		}
		host, port := w.address(u.Hostname()), u.Port()
		if u.Scheme == "https" { // bash has no TLS, so this is all that is checked
			return bash(`exec 3<>"/dev/tcp/$1/$2"`, host, cmp.Or(port, "443"))
		}
		return bash(`exec 3<>"/dev/tcp/$1/$2"; printf 'GET %s HTTP/1.0\r\nHost: %s\r\nConnection: close\r\n\r\n' "$3" "$4" >&3
read -r answer <&3; [[ $answer == HTTP/1.?\ 2??* ]]`, host, cmp.Or(port, "80"), u.RequestURI(), u.Host)
	case "mount":
		return bash(`mountpoint -q -- "$1" && stat --file-system -- "$1"`, h.Mount)
	case "unit":
		active := distro.OrDefault("").Services.Active // the role is one for distributions with systemd
		return append(active[:len(active):len(active)], h.Unit)
	case "dns":
		name, server := h.NameAndServer()
		return bash(askDatagram(53, `[ $((0x${b[2]} >> 7)) = 1 ] && [ $((0x${b[3]} & 15)) = 0 ] &&
[ $((0x${b[6]}${b[7]})) -gt 0 ] && exit 0`),
			append([]string{server}, dnsQueries(name)...)...)
	case "ntp":
		most := max(h.MaxOffset, time.Second)
		return bash(askDatagram(123, `off=$(( 0x${b[40]}${b[41]}${b[42]}${b[43]} - 2208988800 - $(date +%s) ))
[ $((0x${b[0]} >> 6)) != 3 ] && [ $((0x${b[1]})) -ge 1 ] && [ $((0x${b[1]})) -le 15 ] && [ "${off#-}" -le `+
			fmt.Sprint(int(most.Seconds()))+` ] && exit 0`), h.NTP, `\x23`+strings.Repeat(`\x00`, 47))
	}
	return h.Command
}

// askDatagram returns a script that sends its further arguments to a UDP port of its first one, each as a
// datagram, until an answer, whose bytes are the list b, satisfies a condition.
func askDatagram(port int, condition string) string {
	return fmt.Sprintf(`server=$1; shift
for query; do exec 3<>"/dev/udp/$server/%d"; printf "$query" >&3
b=($(timeout 2 dd bs=512 count=1 <&3 2>/dev/null | od -An -v -tx1)); [ ${#b[@]} -ge 12 ] || continue
%s
done; exit 1`, port, condition)
}

// dnsQueries returns the questions for the IPv4 and IPv6 addresses of a name, in the form of printf.
func dnsQueries(name string) (all []string) {
	full, err := dnsmessage.NewName(name + ".")
	if err != nil {
		return nil
	}
	for i, kind := range []dnsmessage.Type{dnsmessage.TypeA, dnsmessage.TypeAAAA} {
		query := dnsmessage.Message{Header: dnsmessage.Header{ID: uint16(0x4f52 + i), RecursionDesired: true},
			Questions: []dnsmessage.Question{{Name: full, Type: kind, Class: dnsmessage.ClassINET}}}
		packet, err := query.Pack()
		if err != nil {
			return nil
		}
		var text strings.Builder
		for _, b := range packet {
			fmt.Fprintf(&text, `\x%02x`, b)
		}
		all = append(all, text.String())
	}
	return all
}

// address returns the host of a URL as an address of the node, as health checks from the host do.
func (w *healthWriter) address(name string) string {
	if a, err := netip.ParseAddr(name); err == nil {
		return a.String()
	}
	if name == w.node.Name && w.node.Address.IsValid() {
		return w.node.Address.String()
	}
	return "127.0.0.1"
}

// seconds returns a timeout in the form of timeout(1).
func seconds(d time.Duration) string { return fmt.Sprintf("%.3f", d.Seconds()) }
