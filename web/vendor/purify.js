/** What makes HTML safe that anybody may have written. */
export { default as DOMPurify } from 'dompurify';
