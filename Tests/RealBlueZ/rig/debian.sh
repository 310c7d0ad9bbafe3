# shellcheck shell=bash disable=SC2034
# Which Debian the guest is made of. Sourced by build-root and build-kernel.
release=bookworm
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
# This machine's own Debian mirror where it has one, whatever release it uses from it.
mirror=${MIRROR:-$(apt-get indextargets --format '$(REPO_URI)' 'LABEL: Debian' 2>/dev/null | head -n 1)}
: "${mirror:?no Debian mirror is named in the sources of apt: set MIRROR to one}"
