package secret

import (
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/crypto/ssh"

	"orrery/internal/site/render"
)

// Derive returns a part of a secret for a template. Stored is the name under which hosts store the secret.
func (k *Keyring) Derive(stored, value, part string) (string, error) {
	switch part {
	case render.Whole:
		return value, nil
	case render.Fingerprint:
		return fingerprint(value)
	case render.PublicKey:
		key, err := ssh.ParsePrivateKey([]byte(value))
		if err != nil {
			return "", err
		}
		return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key.PublicKey()))) + " " + stored, nil
	case render.PrivateKey:
		return joined(pemBlocks(value, keyBlock), 0, 1)
	case render.Certificate:
		return joined(pemBlocks(value, certificateBlock), 0, 1)
	case render.CA:
		return joined(pemBlocks(value, certificateBlock), 1, 1+maxAuthorities)
	case render.SCRAM:
		text, err := scram(value, scramSalt(k.sites[0].Key()+" "+stored))
		if err == nil {
			k.Add(stored+" "+part, text) // with it, guesses of a weak password can be tried out
		}
		return text, err
	}
	return "", fmt.Errorf("secrets have no %s", part)
}

// joined returns the blocks in all from first up to end.
func joined(all []string, first, end int) (string, error) {
	if len(all) <= first {
		return "", errors.New("the secret is not a certificate with its key")
	}
	return strings.Join(all[first:min(end, len(all))], ""), nil
}

// fingerprint returns the SHA-256 of a value: of the public key of SSH and of the certificate in the form that
// programs show, of any other value in hexadecimal digits.
func fingerprint(value string) (string, error) {
	if key, err := ssh.ParsePrivateKey([]byte(value)); err == nil && key.PublicKey().Type() == ssh.KeyAlgoED25519 {
		return ssh.FingerprintSHA256(key.PublicKey()), nil
	}
	content := []byte(value)
	if all := pemBlocks(value, certificateBlock); len(all) > 0 {
		block, _ := pem.Decode([]byte(all[0]))
		content = block.Bytes
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:]), nil
}

// scramIterations is the number of iterations that PostgreSQL uses unless told otherwise.
const scramIterations = 4096

// scramSalt returns the salt of a password. It depends only on what the password is for. So a file with a
// verifier is the same each time it is rendered, and the salt is no help in guessing the password.
func scramSalt(purpose string) []byte {
	sum := sha256.Sum256([]byte("SCRAM-SHA-256 salt " + purpose))
	return sum[:16]
}

// scram returns the verifier of a password for SCRAM-SHA-256, in the form in which PostgreSQL stores it (RFC
// 5803, RFC 7677).
func scram(password string, salt []byte) (string, error) {
	if strings.ContainsFunc(password, func(c rune) bool { return c < ' ' || c > '~' }) {
		// other characters would have to be prepared (RFC 4013), and programs differ in that
		return "", errors.New("a password for SCRAM must consist of printable ASCII characters")
	}
	salted, err := pbkdf2.Key(sha256.New, password, salt, scramIterations, sha256.Size)
	if err != nil {
		return "", err
	}
	mac := func(text string) []byte {
		h := hmac.New(sha256.New, salted)
		h.Write([]byte(text))
		return h.Sum(nil)
	}
	storedKey := sha256.Sum256(mac("Client Key"))
	encode := base64.StdEncoding.EncodeToString
	return fmt.Sprintf("SCRAM-SHA-256$%d:%s$%s:%s", scramIterations, encode(salt), encode(storedKey[:]),
		encode(mac("Server Key"))), nil
}
